/** What a sidecar has opened before something fails at its start: nothing of it goes on. */

import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import type { TracingConfig } from '../../src/config/resolve-tracing.ts';
import { startSidecar } from '../../src/sidecar/sidecar.ts';
import { freePort } from '../support/free-port.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock, settle } from '../support/manual-clock.ts';
import { ScriptedTokenEndpoint } from '../support/scripted-token-endpoint.ts';
import { temporaryFile } from '../wire/temporary-file.ts';

/** Nothing is exported before the end. */
const TRACING: TracingConfig = {
  protocol: 'http/json',
  files: {},
  sampler: 'always_on',
  ratio: 1,
  delayMs: 3_600_000,
  timeoutMs: 10_000,
  mostWaiting: 2048,
  mostAtOnce: 512,
};

/** What takes spans; the first ones. */
async function startCollector(): Promise<{ readonly spans: Promise<string> }> {
  const spans = Promise.withResolvers<string>();
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    response.end('{}');
    spans.resolve(text);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  onTestFinished(() => void vi.unstubAllEnvs());
  return { spans: spans.promise };
}

/** With two credentials, whose provider does not answer. */
async function configure() {
  const provider = await ScriptedTokenEndpoint.start(() => undefined);
  const { directory: dir } = await mountSecret({ client_id: 'shop', client_secret: 'one' });
  const ports = [await freePort(), await freePort()] as const;
  const path = await temporaryFile(
    'token-sidecar.json',
    JSON.stringify({
      listen: `127.0.0.1:${ports[0]}`,
      admin: { listen: `127.0.0.1:${ports[1]}` },
      credentials: ['a', 'b'].map((name) => ({ name, tokenUrl: provider.url, dir })),
      routes: [{ name: 'api', upstream: 'http://127.0.0.1:9', credential: 'a' }],
    }),
  );
  const config = await loadConfig({ config: { key: '--config', text: path } });
  return { config, provider, ports };
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const opened = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return opened;
}

it('closes what keeps the other tokens, and exports their spans, where a credential cannot be opened', async () => {
  const collector = await startCollector();
  const { config, provider } = await configure();
  const clock = new ManualClock();
  let asked = 0;
  const random = (): number => {
    asked += 1;
    if (asked > 1) throw new Error('no more numbers');
    return 0;
  };
  const options = { config, tracing: TRACING, log: captureLog().log, quit: () => undefined, clock, random };
  await expect(startSidecar(options)).rejects.toThrow('no more numbers');
  // A look at files that was under way has its end.
  await settle();
  expect(clock.pendingTimers).toBe(0);
  expect(provider.received.length).toBeLessThanOrEqual(1);
  expect(await collector.spans).toContain('"resourceSpans"');
});

it('closes its listeners where the configuration cannot be followed', async () => {
  const { config, ports } = await configure();
  const clock = new ManualClock();
  const file = {
    get path(): string {
      throw new Error('no file');
    },
    text: undefined,
    load: async () => config,
  };
  const options = { config, file, log: captureLog().log, quit: () => undefined, clock, random: () => 0 };
  await expect(startSidecar(options)).rejects.toThrow('no file');
  expect(await Promise.all(ports.map(isOpen))).toEqual([false, false]);
  // A look at files that was under way has its end.
  await settle();
  expect(clock.pendingTimers).toBe(0);
});
