import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRemoteJWKSet, decodeJwt } from 'jose';
import { startAdminServer } from '../admin/admin-server.ts';
import type { Command } from '../config/command.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { readFlags, readValue, type Settings, unknownVariables } from '../config/settings.ts';
import { formats, oneOf } from '../config/values.ts';
import { issuerAdminEndpoints } from '../issuer/admin.ts';
import { createClientStore, defineClients } from '../issuer/clients.ts';
import { startIssuer } from '../issuer/issuer.ts';
import { createKeyRing, generateSigningKey } from '../issuer/keys.ts';
import { createIssuerMetrics } from '../issuer/metrics.ts';
import { createLogger } from '../platform/log/logger.ts';
import { layOutSecret } from '../platform/mounted/secret-layout.ts';
import { formatAddress, type ListenAddress } from '../platform/net/address.ts';
import { ConfigurationError, type Problem } from '../platform/problems.ts';
import { whenAborted } from '../platform/process/shutdown.ts';
import { Registry } from '../platform/prometheus.ts';
import { systemClock } from '../platform/time/clock.ts';
import { type Sidecar, startSidecar } from '../sidecar/sidecar.ts';
import { createProofCheck, sendWithoutProof, thumbprintIn } from './bound-tokens.ts';
import { narrate, seconds } from './narration.ts';
import { keepCalling, openProviderLine, startProtectedApi } from './parties.ts';
import { takeKeys, whenStarterGone } from './terminal.ts';

const SETTINGS = {
  listen: { argument: 'HOST:PORT', description: 'The sidecar', default: '127.0.0.1:15080' },
  'admin-listen': {
    argument: 'HOST:PORT',
    description: "The sidecar's probes, metrics and status page",
    default: '127.0.0.1:15081',
  },
  'issuer-listen': { argument: 'HOST:PORT', description: 'The token endpoint', default: '127.0.0.1:15090' },
  'issuer-admin-listen': {
    argument: 'HOST:PORT',
    description: "The issuer's public keys",
    default: '127.0.0.1:15091',
  },
  'api-listen': { argument: 'HOST:PORT', description: 'The protected API', default: '127.0.0.1:15092' },
  'token-lifetime': { argument: 'DURATION', description: 'Life of each token', default: '20s' },
  'rotate-after': {
    argument: 'DURATION',
    description: 'Change the client secret once, while requests go on',
  },
  dpop: { description: 'Bind tokens to a key of the sidecar: the API refuses stolen ones', default: 'false' },
} as const satisfies Settings;

const LISTENERS = [
  ['listen', 'proxy'],
  ['admin-listen', 'admin'],
  ['issuer-listen', 'issuer'],
  ['issuer-admin-listen', 'issuerAdmin'],
  ['api-listen', 'api'],
] as const;

/** If tokens live long enough. */
const SLOW_MS = 3000;

const CLIENT_ID = 'demo-app';
const AUDIENCE = 'demo-api';

export const demo: Command = {
  summary: 'Run an issuer, a protected API and the sidecar on loopback, to see it work',
  settings: SETTINGS,
  examples: [
    ['token-sidecar demo', 'until Ctrl-C'],
    ['token-sidecar demo --rotate-after 10s', 'with a changed client secret on the way'],
    ['token-sidecar demo --dpop', 'with tokens that are of no use to a thief'],
  ],
  async run({ args, env, logOutput, shutdown, stdin }) {
    const given = readFlags(SETTINGS, args, env);
    const problems: Problem[] = unknownVariables(SETTINGS, env);
    const address = (flag: keyof typeof SETTINGS & `${string}listen`): ListenAddress =>
      readValue(given[flag], formats.listenAddress, problems) ??
      (formats.listenAddress.parse(SETTINGS[flag].default) as ListenAddress);
    const listen = {
      proxy: address('listen'),
      admin: address('admin-listen'),
      issuer: address('issuer-listen'),
      issuerAdmin: address('issuer-admin-listen'),
      api: address('api-listen'),
    };
    const tokenLifetimeMs = readValue(given['token-lifetime'], formats.duration, problems) ?? 20_000;
    const rotateAfterMs = readValue(given['rotate-after'], formats.duration, problems);
    const bindsTokens = readValue(given.dpop, oneOf(['true', 'false']), problems) === 'true';
    if (tokenLifetimeMs < 2000) {
      problems.push({ key: '--token-lifetime', value: `${tokenLifetimeMs}ms`, expected: 'at least 2s' });
    }
    if (problems.length > 0) throw new ConfigurationError(problems);

    const secretDirectory = await mkdtemp(join(tmpdir(), 'token-sidecar-demo-'));
    const endWatch = whenStarterGone(env, systemClock, () => shutdown.request());
    /** In order of starting; undone in reverse. */
    const closers: (() => Promise<unknown>)[] = [() => rm(secretDirectory, { recursive: true, force: true })];
    closers.push(async () => endWatch());
    try {
      const silent = createLogger('silent');
      const clientSecret = newSecret();
      const secret = await layOutSecret(secretDirectory, {
        client_id: CLIENT_ID,
        client_secret: clientSecret,
      });

      const clientsWith = (clientSecret: string) =>
        defineClients([
          {
            clientId: CLIENT_ID,
            clientSecret,
            scopes: ['read', 'write'],
            audience: [AUDIENCE],
            tokenLifetime: `${Math.round(tokenLifetimeMs / 1000)}s`,
            dpopBoundAccessTokens: String(bindsTokens),
          },
        ]);
      const clients = createClientStore(clientsWith(clientSecret));
      const line = await openProviderLine(listen.issuer, systemClock);
      closers.push(() => line.cut());
      const issuer = await startIssuer({
        listen: { host: '127.0.0.1', port: 0 },
        authUrl: new URL(`http://${formatAddress(line.address)}`),
        realm: 'dx',
        clients,
        keys: createKeyRing(await generateSigningKey('ES256'), systemClock),
        tokenLifetimeSeconds: tokenLifetimeMs / 1000,
        metrics: createIssuerMetrics(new Registry()),
        clock: systemClock,
        log: silent,
      });
      line.leadTo(issuer.address);
      closers.push(() => issuer.close(0));
      const issuerAdmin = await startAdminServer(
        listen.issuerAdmin,
        issuerAdminEndpoints(
          issuer,
          () => shutdown.signal.aborted,
          () => `http://${formatAddress(listen.issuerAdmin)}`,
        ),
        silent,
      );
      closers.push(() => issuerAdmin.close());

      let refusesTokens = false;
      const api = await startProtectedApi({
        listen: listen.api,
        keys: createRemoteJWKSet(new URL(`http://${formatAddress(issuerAdmin.address)}/jwks`)),
        issuer: issuer.issuer,
        audience: AUDIENCE,
        refuses: () => refusesTokens,
        ...(bindsTokens ? { checkProof: createProofCheck(systemClock) } : {}),
      });
      closers.push(() => api.close());

      const config = await sidecarConfig(listen, issuer.tokenUrl, api.address, secretDirectory, bindsTokens);
      const narration = narrate((line) => {
        logOutput.write(`${line}\n`);
        // Nobody watches the demo any more.
        if (logOutput.failure === 'EPIPE') shutdown.request();
      });
      const sidecar = await startSidecar({
        config,
        log: createLogger('info', narration),
        quit: () => shutdown.request(),
      });
      closers.push(() => sidecar.stop());
      await sidecar.ready;
      logOutput.write(
        introduction(
          {
            proxy: sidecar.proxyAddress,
            admin: sidecar.adminAddress,
            api: api.address,
            issuer: line.address,
          },
          tokenLifetimeMs,
          secretDirectory,
          bindsTokens,
        ),
      );

      const app = keepCalling(
        `http://${formatAddress(sidecar.proxyAddress)}/whoami`,
        systemClock,
        (refused) =>
          narration.tellOfApp(
            refused
              ? 'The app gets 401: the API refuses the new token, too.'
              : "The API takes the token: the app's requests succeed again.",
            !refused,
          ),
      );
      closers.push(() => app.stop());
      const controls = createControls(
        {
          async changeSecret() {
            const next = newSecret();
            // As Keycloak does without a rotation policy.
            clients.replace(clientsWith(next));
            return next;
          },
          mountSecret: (next) => secret.update({ client_id: CLIENT_ID, client_secret: next }),
          cutProvider: () => line.cut(),
          mendProvider: () => line.mend(),
          asksAgainInMs() {
            const [token] = sidecar.tokens.map((source) => source.snapshot());
            if (token?.renewalAtMs === undefined || token.consecutiveFailures === 0) return undefined;
            return Math.max(0, token.renewalAtMs - systemClock.now().wallMs);
          },
          delayProvider: (delayMs) => line.delay(delayMs),
          refuseTokens(refused) {
            refusesTokens = refused;
          },
          say: (sentence) => narration.say(sentence),
        },
        clientSecret,
        Math.min(SLOW_MS, tokenLifetimeMs / 4),
      );
      closers.push(() => controls.settled());
      if (rotateAfterMs !== undefined) {
        const cancelRotation = systemClock.after(rotateAfterMs, controls.rotate);
        closers.push(async () => cancelRotation());
      }
      const quit = (): void => shutdown.request();
      const leaveKeys = takeKeys(stdin, { ...controls.keys, q: quit }, quit);
      if (leaveKeys !== undefined) {
        closers.push(async () => leaveKeys());
        logOutput.write(`${KEYS}\n`);
      }
      if (bindsTokens) await tellOfTheft(sidecar, api.address, narration.say);
      narration.add(() => app.summary());
      await whenAborted(shutdown.signal);
      narration.say('The demo ends.');
      return 0;
    } catch (error) {
      // Our own listeners would count as other programs'.
      for (const close of closers.splice(0).reverse()) await close();
      const { explainConflicts } = await import('../config/address-conflicts.ts');
      await explainConflicts(
        error,
        LISTENERS.map(([flag, part]) => ({ key: given[flag]?.key ?? `--${flag}`, address: listen[part] })),
      );
      throw error;
    } finally {
      for (const close of closers.reverse()) await close();
    }
  },
};

function newSecret(): string {
  return randomBytes(24).toString('base64');
}

function sidecarConfig(
  listen: { readonly proxy: ListenAddress; readonly admin: ListenAddress },
  tokenUrl: string,
  api: ListenAddress,
  secretDirectory: string,
  bindsTokens: boolean,
): Promise<Config> {
  const setting = (text: string) => ({ key: 'demo', text });
  return loadConfig({
    'token-url': setting(tokenUrl),
    upstream: setting(`http://${formatAddress(api)}`),
    'credentials-dir': setting(secretDirectory),
    listen: setting(formatAddress(listen.proxy)),
    'admin-listen': setting(formatAddress(listen.admin)),
    ...(bindsTokens ? { 'proof-of-possession': setting('dpop') } : {}),
  });
}

function introduction(
  addresses: Readonly<Record<'proxy' | 'admin' | 'api' | 'issuer', ListenAddress>>,
  tokenLifetimeMs: number,
  secretDirectory: string,
  bindsTokens: boolean,
): string {
  const [proxy, admin, api, issuer] = [addresses.proxy, addresses.admin, addresses.api, addresses.issuer].map(
    (address) => `http://${formatAddress(address)}`,
  );
  return `
An issuer, a protected API and the sidecar are running. Tokens live ${tokenLifetimeMs / 1000} s. Try:

  curl ${proxy}/whoami      # 200: through the sidecar
  curl -i ${api}/whoami   # 401: around it
  curl ${admin}/readyz
  curl ${admin}/api/status
  curl -s ${admin}/metrics | grep token_sidecar_

To practise with check and the runbooks, in another terminal:

  export TOKEN_SIDECAR_AUTH_URL=${issuer}
  export TOKEN_SIDECAR_UPSTREAM=${api}
  export TOKEN_SIDECAR_ADMIN_LISTEN=${formatAddress(addresses.admin)}
  export TOKEN_SIDECAR_CREDENTIALS_DIR=${secretDirectory}${bindsTokens ? '\n  export TOKEN_SIDECAR_PROOF_OF_POSSESSION=dpop' : ''}
  token-sidecar check --status     # npm run token-sidecar -- check --status
  token-sidecar check
  token-sidecar explain TokenSidecarTokenUnavailable

Status page: ${admin}/    Ctrl-C ends. What the sidecar does:

`;
}

async function tellOfTheft(
  { tokens }: Sidecar,
  api: ListenAddress,
  say: (sentence: string) => void,
): Promise<void> {
  const token = tokens[0]?.held()?.token;
  if (token === undefined) return;
  say(`The token is bound to the sidecar's key (thumbprint ${thumbprintIn(decodeJwt(token))}).`);
  const status = await sendWithoutProof(`http://${formatAddress(api)}/whoami`, token);
  say(`A thief tries the token as Bearer, without the key: the API says ${status}.`);
}

interface Stage {
  /** Gives the client another secret at the issuer. */
  changeSecret(): Promise<string>;
  /** Puts it into the mounted Secret, as the kubelet does. */
  mountSecret(clientSecret: string): Promise<void>;
  cutProvider(): Promise<void>;
  mendProvider(): Promise<void>;
  /** Undefined if the last grant succeeded. */
  asksAgainInMs(): number | undefined;
  delayProvider(delayMs: number): void;
  /** Whether the API answers 401 to every token. */
  refuseTokens(refused: boolean): void;
  say(sentence: string): void;
}

interface Controls {
  readonly keys: Readonly<Record<'r' | 'w' | 'p' | 's' | 'u', () => void>>;
  /** As `r` does. */
  rotate(): void;
  settled(): Promise<unknown>;
}

const KEYS = `Keys:  r  rotate the client secret        w  wrong secret, and the right one again
       p  provider down, and up again     s  slow provider, and a fast one again
       u  upstream answers 401, and 200   q  quit
`;

/** @param slowMs how long a slow provider takes. */
function createControls(stage: Stage, clientSecret: string, slowMs: number): Controls {
  let right = clientSecret;
  let isWrong = false;
  let isDown = false;
  let isSlow = false;
  let isRefused = false;
  let last: Promise<unknown> = Promise.resolve();

  /** One after the other, even if a key is held down. */
  function inTurn(action: () => Promise<string>): void {
    last = last.then(action).then(
      (sentence) => stage.say(sentence),
      (error: unknown) => stage.say(`That could not be done: ${String(error)}.`),
    );
  }

  function rotate(): void {
    inTurn(async () => {
      right = await stage.changeSecret();
      isWrong = false;
      await stage.mountSecret(right);
      return 'You changed the client secret, at the issuer and in the mounted Secret.';
    });
  }

  return {
    rotate,
    settled: () => last,
    keys: {
      r: rotate,
      w: () =>
        inTurn(async () => {
          await stage.mountSecret(isWrong ? right : `not ${right}`);
          isWrong = !isWrong;
          return `You put the ${isWrong ? 'wrong' : 'right'} client secret into the mounted Secret.`;
        }),
      p: () =>
        inTurn(async () => {
          await (isDown ? stage.mendProvider() : stage.cutProvider());
          isDown = !isDown;
          if (isDown) return 'You took the provider down: connections to it are refused.';
          const againInMs = stage.asksAgainInMs();
          const again = againInMs === undefined ? '' : ` The sidecar asks again in ${seconds(againInMs)}.`;
          return `You brought the provider up again.${again}`;
        }),
      s: () =>
        inTurn(async () => {
          isSlow = !isSlow;
          stage.delayProvider(isSlow ? slowMs : 0);
          return isSlow
            ? `You made the provider slow: it takes ${seconds(slowMs)} for an answer.`
            : 'You made the provider fast again.';
        }),
      u: () =>
        inTurn(async () => {
          isRefused = !isRefused;
          stage.refuseTokens(isRefused);
          return isRefused
            ? 'You made the API refuse every token: it answers 401.'
            : 'You made the API take tokens again.';
        }),
    },
  };
}
