import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { formatAddress } from '../../src/platform/net/address.ts';
import { type Sidecar, startSidecar } from '../../src/sidecar/sidecar.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock, settle } from '../support/manual-clock.ts';
import { ScriptedTokenEndpoint } from '../support/scripted-token-endpoint.ts';
import { temporaryFile } from '../wire/temporary-file.ts';

export interface World {
  readonly sidecar: Sidecar;
  readonly clock: ManualClock;
  readonly providers: Readonly<Record<'payments' | 'mail', ScriptedTokenEndpoint>>;
  /** What both upstreams answer from now on. */
  upstreamAnswers(answer: RequestListener): void;
  /** Changes the mounted Secret of both credentials. */
  mountSecret(files: Readonly<Record<string, string>>): Promise<void>;
  /** The status page. */
  readonly url: string;
  /** Sends a request through a route, and has it take this long by the sidecar's clock. */
  call(path: string, tookMs?: number): Promise<number>;
  /** Lets time pass, with `each` once in ten seconds. */
  pass(ms: number, each?: () => Promise<unknown>): Promise<void>;
}

const POD = { name: 'shop-7d4b9c8f5-x2x9p', namespace: 'payments', node: 'node-1' };

/**
 * A real sidecar with two credentials and two routes, on a clock that the test moves.
 * @param before what providers are told before the sidecar asks them.
 * @param ofPayments further settings of the credential.
 */
export async function startWorld(
  extra: Readonly<Record<string, unknown>> = {},
  before: (providers: World['providers']) => void = () => undefined,
  ofPayments: Readonly<Record<string, unknown>> = {},
): Promise<World> {
  let answer: RequestListener = (_, response) => response.end('ok');
  let tookMs = 0;
  const upstream = createServer((request, response) => {
    void clock.advance(tookMs).then(() => answer(request, response));
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    upstream.closeAllConnections();
    upstream.close();
  });
  const address = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  const [payments, mail] = [await ScriptedTokenEndpoint.start(), await ScriptedTokenEndpoint.start()];
  before({ payments, mail });
  const { directory: dir, update } = await mountSecret({ client_id: 'shop', client_secret: 'one' });
  const config = {
    listen: '127.0.0.1:0',
    admin: { listen: '127.0.0.1:0' },
    credentials: [
      { name: 'payments', tokenUrl: payments.url, dir, scope: 'read write', ...ofPayments },
      { name: 'mail', tokenUrl: mail.url, dir, required: false },
    ],
    routes: [
      {
        name: 'payments',
        match: { pathPrefix: '/payments/' },
        upstream: `${address}/v2`,
        credential: 'payments',
      },
      { name: 'mail', match: { pathPrefix: '/mail/' }, upstream: address, credential: 'mail' },
    ],
    ...extra,
  };
  let tokens: Sidecar['tokens'] = [];
  /** Grants are real requests: what has been begun ends before time goes on. */
  const clock = new ManualClock(async () => {
    await settle();
    while (tokens.some((token) => token.snapshot().grantInFlight)) await settle();
  });
  const sidecar = await startSidecar({
    config: await loadConfig({
      config: { key: '--config', text: await temporaryFile('token-sidecar.json', JSON.stringify(config)) },
    }),
    log: captureLog().log,
    pod: POD,
    quit: () => undefined,
    clock,
    random: () => 0.5,
  });
  onTestFinished(() => sidecar.stop());
  await clock.advance(1000);
  tokens = sidecar.tokens;
  await clock.advance(0);
  const proxy = `http://${formatAddress(sidecar.proxyAddress)}`;

  return {
    sidecar,
    clock,
    providers: { payments, mail },
    upstreamAnswers(next) {
      answer = next;
    },
    async mountSecret(files) {
      await update(files);
    },
    url: `http://${formatAddress(sidecar.adminAddress)}/`,
    async call(path, took = 0) {
      tookMs = took;
      const { status, body } = await fetch(`${proxy}${path}`);
      await body?.cancel();
      tookMs = 0;
      return status;
    },
    async pass(ms, each) {
      for (let passed = 0; passed < ms; passed += 10_000) {
        await each?.();
        await clock.advance(Math.min(10_000, ms - passed));
      }
    },
  };
}
