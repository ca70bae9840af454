import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { MAX_PEM_BYTES, readBoundedFile } from '../bounded-file.ts';
import { systemClock } from '../clock.ts';
import type { Config, CredentialConfig, EgressProxyConfig, RouteConfig } from '../config/config.ts';
import { unknownVariables } from '../config/environment.ts';
import { loadConfig } from '../config/load.ts';
import { PROXY_SETTINGS } from '../config/proxy-settings.ts';
import { readFlags, readValue, type Settings } from '../config/settings.ts';
import { oneOf } from '../config/values.ts';
import type { EgressTunnel } from '../egress/egress-tunnel.ts';
import { ERRORS, type ErrorCode, messageOf, systemCodeOf } from '../errors.ts';
import { readCredentials } from '../token/credentials.ts';
import { exchangesForRequests } from '../token/grants/token-exchange.ts';
import type { IssuerMetadata } from '../token/provider/issuer-metadata.ts';
import { createTokenEndpoint } from '../token/provider/token-endpoint.ts';
import { connectionRemedy, whyNoToken, withoutQuery } from '../token/why-no-token.ts';
import type { Command } from './command.ts';

/** One line of the table: what was tried and how it went. */
interface Finding {
  readonly what: string;
  readonly detail: string;
  /** What is wrong; undefined when all is well. */
  readonly failure?: 'configuration' | 'credentials_rejected' | 'provider_unavailable';
  /** Of a credential that the pod starts without: a failure is a warning, and does not decide the exit status. */
  readonly optional?: boolean;
}

/** The failure to mend first decides the exit status, among those of what is required. */
const BY_URGENCY = [
  'configuration',
  'credentials_rejected',
  'provider_unavailable',
] as const satisfies ErrorCode[];

const yesOrNo = oneOf(['true', 'false']);

const SETTINGS = {
  ...PROXY_SETTINGS,
  json: { description: 'Print the findings as JSON', default: 'false' },
  offline: { description: 'Look at configuration and files alone; ask nobody', default: 'false' },
} as const satisfies Settings;

/** It runs in the sidecar's container, too, and with its environment. */
const BESIDE_A_SIDECAR: Settings = {
  ...SETTINGS,
  'termination-log': { description: 'of the sidecar' },
};

export const check: Command = {
  summary:
    'Validate the configuration, fetch one token per credential, connect to each upstream; change nothing',
  settings: SETTINGS,
  examples: [
    [
      'kubectl exec deploy/shop -c token-sidecar -- node /app/token-sidecar.js check',
      'in a pod, with its own settings',
    ],
    ['token-sidecar check --config token-sidecar.yaml --offline', 'a file alone, before it is rolled out'],
  ],
  async run({ args, env, stdout }) {
    const { json, offline, ...given } = readFlags(SETTINGS, args, env);
    const problems = unknownVariables(BESIDE_A_SIDECAR, env);
    const isJson = readValue(json, yesOrNo, problems) === 'true';
    const isOffline = readValue(offline, yesOrNo, problems) === 'true';
    const config = await loadConfig(given, problems);
    const findings = await examine(config, isOffline);
    stdout.write(isJson ? formatJson(findings) : formatTable(findings));
    const decisive = findings.filter(({ optional }) => !optional);
    const worst = BY_URGENCY.find((failure) => decisive.some((finding) => finding.failure === failure));
    return worst === undefined ? 0 : ERRORS[worst].exit;
  },
};

async function examine(config: Config, offline: boolean): Promise<Finding[]> {
  const credentials = await Promise.all(config.credentials.map((one) => examineCredential(one, offline)));
  const upstreams = offline ? [] : await Promise.all(config.routes.map(examineUpstream));
  const { length: routes } = config.routes;
  return [
    { what: 'configuration', detail: `${config.credentials.length} credential(s), ${routes} route(s)` },
    ...credentials.flat(),
    ...upstreams,
  ];
}

async function examineCredential(config: CredentialConfig, offline: boolean): Promise<Finding[]> {
  const secret = await readCredentials(config);
  const mounted = `credential ${config.name}: mounted Secret`;
  const optional = config.required === false;
  if (secret.state !== 'loaded') {
    return [{ what: mounted, detail: secret.detail, failure: 'configuration', optional }];
  }

  const usable: Finding = { what: mounted, detail: config.directory };
  if (offline) return [usable];
  if (exchangesForRequests(config)) {
    const detail = 'exchanged for those of requests: nothing to be tried without one';
    return [usable, { what: `credential ${config.name}: tokens`, detail }];
  }
  const endpoint = createTokenEndpoint(config, systemClock);
  const outcome = await endpoint.requestToken(secret.credentials, new AbortController().signal);
  const tokenUrl = endpoint.tokenUrl();
  const discovered = describeDiscovery(config, endpoint.metadata());
  await endpoint.close();
  const token = `credential ${config.name}: token`;
  if (outcome.result === 'success') {
    const source = tokenUrl === undefined ? 'mounted' : `granted by ${new URL(tokenUrl).host}`;
    const lifetime = Math.round(outcome.lifetimeMs / 1000);
    const end = Number.isFinite(lifetime) ? `lives ${lifetime} s` : 'lives until it is replaced';
    return [usable, ...discovered, { what: token, detail: `${source}, ${end}` }];
  }
  const { code, message } = whyNoToken(config, { lastFailure: outcome });
  return [usable, ...discovered, { what: token, detail: message, failure: code, optional }];
}

/** What the metadata calls a method of ours. */
function publishedNames(method: CredentialConfig['clientAuth']['method']): readonly string[] {
  switch (method) {
    case 'kubernetes_jwt':
      return ['private_key_jwt'];
    case 'tls_client_auth':
      return ['tls_client_auth', 'self_signed_tls_client_auth'];
    default:
      return [method];
  }
}

/** Where the issuer's metadata was found, what it says, and whether it offers what the client does; metadata may be incomplete. */
function describeDiscovery(
  { name, clientAuth: { method } }: CredentialConfig,
  metadata: IssuerMetadata | undefined,
): Finding[] {
  if (metadata === undefined) return [];
  const { foundAt, tokenUrl, clientAuthentication } = metadata;
  const found = {
    what: `credential ${name}: issuer`,
    detail: `${foundAt} names ${withoutQuery(tokenUrl)}`,
  };
  const what = `credential ${name}: client authentication`;
  if (publishedNames(method).some((one) => clientAuthentication.includes(one))) {
    return [found, { what, detail: `${method} is offered` }];
  }
  const offered = clientAuthentication.filter((one) => /^[\w-]{1,40}$/.test(one)).slice(0, 10);
  const detail = `${method} is not among those that the issuer offers: ${offered.join(', ') || 'none'}`;
  return [found, { what, detail, failure: 'configuration', optional: true }];
}

async function examineUpstream(route: RouteConfig): Promise<Finding> {
  const what = `route ${route.name}: upstream`;
  const { protocol, authority } = route.upstream;
  const startedAt = performance.now();
  try {
    await connectOnce(route);
    const tookMs = Math.round(performance.now() - startedAt);
    return { what, detail: `${protocol}://${authority} reached in ${tookMs} ms` };
  } catch (error) {
    const why = systemCodeOf(error) ?? messageOf(error);
    const remedy = connectionRemedy(why);
    const detail = `${protocol}://${authority}: ${why}${remedy === undefined ? '' : `: ${remedy}`}`;
    return { what, detail, failure: 'provider_unavailable' };
  }
}

/** A TCP connection, and TLS on it where the route has it, made and closed: no request is sent. */
async function connectOnce({ upstream, tls, timeouts, egressProxy }: RouteConfig): Promise<void> {
  const { host, port, protocol } = upstream;
  const pem = (path: string | undefined) =>
    path === undefined ? undefined : readBoundedFile(path, MAX_PEM_BYTES);
  const [ca, cert, key] = await Promise.all([pem(tls.caFile), pem(tls.certFile), pem(tls.keyFile)]);
  const tunnel = egressProxy && (await tunnelThrough(egressProxy, host, port, timeouts.connectMs));
  await new Promise<void>((resolve, reject) => {
    const way = tunnel === undefined ? { host, port } : { host, socket: tunnel };
    const socket =
      protocol === 'http'
        ? connect({ host, port }, resolve)
        : connectTls({ ...way, ca, cert, key, servername: tls.serverName ?? serverName(host) }, resolve);
    socket.once('error', reject);
    socket.setTimeout(timeouts.connectMs, () =>
      reject(new Error(`no connection within ${timeouts.connectMs} ms`)),
    );
    socket.once('connect', () => protocol === 'http' && socket.end());
    socket.once('secureConnect', () => socket.end());
    socket.once('timeout', () => socket.destroy());
  });
}

/** Undefined where the host is reached without the proxy. */
async function tunnelThrough(
  proxy: EgressProxyConfig,
  host: string,
  port: number,
  withinMs: number,
): Promise<EgressTunnel | undefined> {
  const [{ EgressTunnel }, { goesThrough }] = await Promise.all([
    import('../egress/egress-tunnel.ts'),
    import('../egress/goes-through.ts'),
  ]);
  if (!goesThrough(proxy, host)) return undefined;
  return new EgressTunnel({ proxy, host, port, withinMs, clock: systemClock, connectTcp: connect });
}

/** Server Name Indication takes names only (RFC 6066 §3). */
function serverName(host: string): string | undefined {
  return /^[\d.]+$|:/.test(host) ? undefined : host;
}

function formatTable(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ what }) => what.length));
  return findings
    .map((finding) => `${verdictOn(finding)}  ${finding.what.padEnd(width)}  ${finding.detail}\n`)
    .join('');
}

/** For programs: `{ "findings": [{ "what", "verdict", "detail", "failure"? }] }`; verdicts are ok, warning and failure. */
function formatJson(findings: readonly Finding[]): string {
  const rows = findings.map(({ what, detail, failure, optional }) => ({
    what,
    verdict: failure === undefined ? 'ok' : optional ? 'warning' : 'failure',
    detail,
    ...(failure === undefined ? {} : { failure }),
  }));
  return `${JSON.stringify({ findings: rows }, null, 2)}\n`;
}

function verdictOn({ failure, optional }: Finding): string {
  if (failure === undefined) return 'ok  ';
  return optional ? 'WARN' : 'FAIL';
}
