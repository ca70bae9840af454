import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type AdminEndpoint, plain, startAdminServer } from '../../src/admin/admin-server.ts';
import { metricsEndpoint } from '../../src/admin/metrics-endpoint.ts';
import { quitEndpoint } from '../../src/admin/probes.ts';
import type { ListenAddress } from '../../src/platform/net/address.ts';
import { Gauge, Registry } from '../../src/platform/prometheus.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';
import { volume } from '../support/volume.ts';
import { WorkingClock } from './working-clock.ts';

const MAX_REST_MS = 1000;

const ANSWER_MS = 20_000;

const LIVEZ: AdminEndpoint = { method: 'GET', answer: () => plain(200, 'ok') };

async function serve(
  endpoints: Readonly<Record<string, AdminEndpoint>>,
  host = '127.0.0.1',
  options: Parameters<typeof startAdminServer>[3] = {},
) {
  const server = await startAdminServer(
    { host, port: 0 },
    { '/livez': LIVEZ, ...endpoints },
    captureLog().log,
    options,
  );
  onTestFinished(() => server.close());
  return server.address;
}

/** The status of one request on a connection of its own. */
function ask(
  address: ListenAddress,
  path: string,
  options: { method?: string; headers?: Record<string, string>; localAddress?: string } = {},
): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ ...address, path, agent: false, ...options }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0));
    });
    sent.once('error', reject);
    sent.end();
  });
}

describe('the time of an answer', () => {
  const BODY = 'a'.repeat(32 * 1024 * 1024);
  const BIG: AdminEndpoint = { method: 'GET', answer: () => plain(200, BODY) };

  /** An answer that is taken by pieces. */
  async function read({ port }: ListenAddress, path: string) {
    const socket = connect(port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => undefined).write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    await once(socket, 'readable');
    let bytes = 0;
    function took(piece: Buffer | null): void {
      bytes += piece?.length ?? 0;
    }
    return {
      socket,
      bytes: () => bytes,
      take: () => took(socket.read() as Buffer | null),
      takeAll: () => void socket.on('data', took),
    };
  }

  it('is 20 s: a slow reader is cut off, though it is never idle', async () => {
    const clock = new ManualClock();
    const address = await serve({ '/big': BIG }, '127.0.0.1', { clock });
    const readers = await Promise.all([read(address, '/big'), read(address, '/big')]);
    for (let seconds = 0; seconds < 19; seconds++) {
      await clock.advance(1000);
      for (const { take } of readers) take();
    }
    expect(clock.pendingTimers).toBe(2);
    await clock.advance(ANSWER_MS - 19_000);
    const closed = readers.map(({ socket }) => once(socket, 'close'));
    for (const { takeAll } of readers) takeAll();
    await Promise.all(closed);
    for (const { bytes } of readers) expect(bytes()).toBeLessThan(BODY.length);
    await expect.poll(() => clock.pendingTimers).toBe(0);
    expect(await ask(address, '/livez')).toBe(200);
  });

  it('is enough for a reader that finishes in it, and then the connection ends', async () => {
    const clock = new ManualClock();
    const address = await serve({ '/big': BIG }, '127.0.0.1', { clock });
    const { socket, bytes, takeAll } = await read(address, '/big');
    await clock.advance(ANSWER_MS - 1);
    const ended = once(socket, 'end');
    takeAll();
    await ended;
    expect(bytes()).toBeGreaterThan(BODY.length);
    expect(clock.pendingTimers).toBe(0);
  });

  it('also bounds an answer that is not rendered yet', async () => {
    const clock = new ManualClock();
    const stuck: AdminEndpoint = { method: 'GET', answer: () => new Promise(() => undefined) };
    const address = await serve({ '/stuck': stuck }, '127.0.0.1', { clock });
    const cut = expect(ask(address, '/stuck')).rejects.toThrow('socket hang up');
    await expect.poll(() => clock.pendingTimers).toBe(1);
    await clock.advance(ANSWER_MS);
    await cut;
  });
});

describe('the cost of answers', () => {
  const SPIN_MS = 5;
  const SCRAPES = volume(160, 400);

  function spinningMetrics() {
    const registry = new Registry();
    let renderings = 0;
    new Gauge({
      name: 'x',
      help: 'x',
      registers: [registry],
      collect() {
        renderings += 1;
        const endMs = performance.now() + SPIN_MS;
        while (performance.now() < endMs);
        this.set(renderings);
      },
    });
    return { endpoint: metricsEndpoint(registry), renderings: () => renderings };
  }

  it('64 scrapers without pause share renderings, which take a twentieth of the time', async () => {
    const { endpoint, renderings } = spinningMetrics();
    const address = await serve({ '/metrics': endpoint });
    const startedAtMs = performance.now();
    let answers = 0;
    const scrape = async (localAddress: string): Promise<void> => {
      while (answers < SCRAPES) {
        expect(await ask(address, '/metrics', { localAddress })).toBe(200);
        answers += 1;
      }
    };
    await Promise.all(Array.from({ length: 64 }, (_, n) => scrape(`127.0.1.${n + 1}`)));
    const elapsedMs = performance.now() - startedAtMs;
    expect(renderings() * SPIN_MS).toBeLessThan(elapsedMs * 0.05 + 2 * SPIN_MS);
    expect(renderings()).toBeLessThan(answers / 2);
    expect(await ask(address, '/livez')).toBe(200);
  });

  it('a probe does not wait for a page that is being rendered', async () => {
    const clock = new WorkingClock();
    const slow: AdminEndpoint = {
      method: 'GET',
      variant: () => 'only',
      answer() {
        clock.work(100);
        return plain(200, 'late');
      },
    };
    const address = await serve({ '/slow': slow }, '127.0.0.1', { clock });
    expect(await ask(address, '/slow')).toBe(200);
    const waiting = ask(address, '/slow');
    // Those of the rest after the first page, and of the answer.
    await until(() => clock.pendingTimers === 2);
    // No timer of this clock has fired.
    expect(await ask(address, '/livez')).toBe(200);
    await clock.advance(MAX_REST_MS);
    expect(await waiting).toBe(200);
  });

  it('a rendering for local callers is not shared with callers through a proxy', async () => {
    const first = Promise.withResolvers<void>();
    const page: AdminEndpoint = {
      method: 'GET',
      variant: () => 'only',
      answer: async ({ isLocal }) => {
        await first.promise;
        return plain(isLocal ? 200 : 203, 'page');
      },
    };
    const address = await serve({ '/': page });
    const asked = [{}, { via: '1.1 proxy' }, {}, { via: '1.1 proxy' }].map((headers) =>
      ask(address, '/', { headers }),
    );
    // A probe that is asked for after them is answered after they have come.
    expect(await ask(address, '/livez')).toBe(200);
    first.resolve();
    expect(await Promise.all(asked)).toEqual([200, 203, 200, 203]);
  });

  it('a rendering that fails is 500, and the next one is tried anew', async () => {
    const registry = new Registry();
    let fails = true;
    new Gauge({
      name: 'x',
      help: 'x',
      registers: [registry],
      collect() {
        if (fails) throw new Error('no');
        this.set(1);
      },
    });
    const address = await serve({ '/metrics': metricsEndpoint(registry) });
    expect(await ask(address, '/metrics')).toBe(500);
    fails = false;
    expect(await ask(address, '/metrics')).toBe(200);
  });
});

it('a request from the page of another site is 403 on every path, and changes nothing', async () => {
  let quits = 0;
  const address = await serve({ '/quitquitquit': quitEndpoint(() => quits++) });
  const host = `localhost:${address.port}`;
  const foreign: Record<string, string>[] = [
    { host, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' },
    { host, origin: 'https://evil.example' },
    { host: `rebind.evil.example:${address.port}`, 'user-agent': 'Mozilla/5.0' },
  ];
  for (const headers of foreign) {
    expect(await ask(address, '/livez', { headers })).toBe(403);
    expect(await ask(address, '/quitquitquit', { method: 'POST', headers })).toBe(403);
  }
  expect(quits).toBe(0);
  expect(await ask(address, '/quitquitquit', { method: 'POST', headers: { host } })).toBe(200);
  await expect.poll(() => quits).toBe(1);
});

describe('/quitquitquit', () => {
  async function serveQuit(host?: string) {
    let quits = 0;
    return {
      address: await serve({ '/quitquitquit': quitEndpoint(() => quits++) }, host),
      quits: () => quits,
    };
  }

  it.each(['10.0.0.5', '::ffff:10.0.0.5', 'fd00::1', '::', '0.0.0.0', '128.0.0.1', '127.0.0.6', ''])(
    'is refused to a peer at %j',
    async (peer) => {
      const { address, quits } = await serveQuit();
      let seen = peer;
      const disguise = (message: unknown): void => {
        Object.defineProperty((message as { socket: Socket }).socket, 'remoteAddress', { value: seen });
      };
      subscribe('net.server.socket', disguise);
      onTestFinished(() => void unsubscribe('net.server.socket', disguise));
      expect(await ask(address, '/quitquitquit', { method: 'POST' })).toBe(403);
      expect(quits()).toBe(0);
      seen = '::ffff:127.0.0.1';
      expect(await ask(address, '/quitquitquit', { method: 'POST' })).toBe(200);
    },
  );

  it.each([
    'token-sidecar-hop',
    'forwarded',
    'via',
    'x-forwarded-for',
    'x-real-ip',
    'x-envoy-attempt-count',
    'l5d-client-id',
  ])('is refused to whoever comes through a proxy, from loopback or not: %s', async (field) => {
    const { address, quits } = await serveQuit();
    const headers = { [field]: 'somebody' };
    expect(await ask(address, '/quitquitquit', { method: 'POST', headers })).toBe(403);
    expect(await ask(address, '/livez', { headers })).toBe(200);
    expect(quits()).toBe(0);
  });

  const own = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ internal, family }) => !internal && family === 'IPv4')?.address;

  it('goes for the loopback of both families where the listener has every address', async () => {
    const { address, quits } = await serveQuit('::');
    const loopbacks = Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .filter(({ internal, address: at }) => internal && (at === '127.0.0.1' || at === '::1'))
      .map(({ address: at }) => at);
    expect(loopbacks).toContain('127.0.0.1');
    for (const host of loopbacks) {
      expect(await ask({ host, port: address.port }, '/livez'), host).toBe(200);
      expect(await ask({ host, port: address.port }, '/quitquitquit', { method: 'POST' }), host).toBe(200);
    }
    expect(quits()).toBe(loopbacks.length);
  });

  it.skipIf(own === undefined)('is refused to a caller from another address of this machine', async () => {
    const { address, quits } = await serveQuit('0.0.0.0');
    const from = { host: own as string, port: address.port };
    expect(await ask(from, '/quitquitquit', { method: 'POST' })).toBe(403);
    expect(await ask(from, '/livez')).toBe(200);
    expect(quits()).toBe(0);
  });
});
