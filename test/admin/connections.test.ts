import { connect } from 'node:net';
import { setTimeout as timersTurn } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type AdminEndpoint, plain, startAdminServer } from '../../src/admin/admin-server.ts';
import { type Clock, systemClock } from '../../src/platform/time/clock.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';

const MAX_CONNECTIONS = 192;

const REQUEST_WITHIN_MS = 1000;

const MAX_FURTHER = 32;

const LIVEZ = 'GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n';

async function serve(clock: Clock, endpoints: Readonly<Record<string, AdminEndpoint>> = {}) {
  let refused = 0;
  const server = await startAdminServer(
    { host: '127.0.0.1', port: 0 },
    { '/livez': { method: 'GET', answer: () => plain(200, 'ok') }, ...endpoints },
    captureLog().log,
    { clock, metrics: { connectionRefused: () => void refused++ } },
  );
  onTestFinished(() => server.close());
  const { port } = server.address;

  /** A connection that says `text` and then nothing. */
  function open(text: string, localAddress = '127.0.0.1') {
    const socket = connect({ port, host: '127.0.0.1', localAddress }, () => socket.write(text));
    onTestFinished(() => void socket.destroy());
    let said = '';
    socket
      .on('error', () => undefined)
      .on('data', (bytes) => {
        said += bytes;
      });
    const closed = new Promise((resolve) => socket.once('close', resolve));
    return { socket, closed, said: () => said };
  }

  /** All that one request is answered. */
  async function ask(localAddress?: string): Promise<string> {
    const { closed, said } = open(LIVEZ, localAddress);
    await closed;
    return said();
  }

  return { open, ask, refused: () => refused };
}

/** As long as nobody moves the clock, no connection has had its second. */
async function serveInAMoment() {
  const clock = new ManualClock();
  const served = await serve(clock);

  /** A connection of each of these addresses, in this order. Resolves when each has a place or is refused. */
  async function crowd(addresses: readonly number[], text = '') {
    let closed = 0;
    for (const address of addresses) {
      void served.open(text, `127.0.1.${address}`).closed.then(() => closed++);
    }
    await until(() => closed + clock.pendingTimers === addresses.length);
    return { closed: () => closed };
  }

  return { ...served, clock, crowd };
}

describe('connections to the admin listener', () => {
  it.each([
    ['silent', ''],
    ['in the middle of a request', 'GET /livez HTTP/1.1\r\nHo'],
  ])('that are %s have their second: an address has few for it, and others are served', async (_, text) => {
    const { clock, crowd, ask, refused } = await serveInAMoment();
    const came = await crowd(new Array(200).fill(1), text);
    const outside = 200 - 1 - MAX_FURTHER / 2;
    expect([came.closed(), refused()]).toEqual([outside, outside]);
    expect(await ask('127.0.1.1')).toBe('');
    expect(await ask('127.0.0.2')).toMatch(/^HTTP\/1\.1 200 /);
    await clock.advance(REQUEST_WITHIN_MS - 1);
    expect(came.closed()).toBe(outside);
    await clock.advance(1);
    await until(() => came.closed() === 200);
    expect(await ask('127.0.1.1')).toMatch(/^HTTP\/1\.1 200 /);
    await until(() => clock.pendingTimers === 0);
  });

  it.each([
    [2, 100],
    [5, 40],
    [20, 8],
  ])(
    'of %i addresses with %i each leave two to another address, and none ends for them',
    async (addresses, each) => {
      const { crowd, open, ask } = await serveInAMoment();
      const came = await crowd(Array.from({ length: addresses * each }, (_, n) => 1 + (n % addresses)));
      const refused = came.closed();
      expect(refused).toBeGreaterThan(0);
      const first = open('GET /live', '127.0.0.2');
      expect(await ask('127.0.0.2')).toMatch(/^HTTP\/1\.1 200 /);
      first.socket.write(LIVEZ.slice('GET /live'.length));
      await first.closed;
      expect(first.said()).toMatch(/^HTTP\/1\.1 200 /);
      expect(came.closed()).toBe(refused);
    },
  );

  it('leave one to another address, though others take all that is left', async () => {
    const { crowd, ask } = await serveInAMoment();
    const addresses = MAX_CONNECTIONS - MAX_FURTHER - 1;
    const came = await crowd(
      Array.from({ length: addresses }, (_, n) => new Array(n < 10 ? 20 : 2).fill(1 + n)).flat(),
    );
    const refused = came.closed();
    expect(refused).toBeGreaterThan(0);
    expect(await ask('127.0.0.2')).toMatch(/^HTTP\/1\.1 200 /);
    expect(came.closed()).toBe(refused);
  });

  it('are bounded for all addresses together, and none ends for one that is refused', async () => {
    const { crowd, ask } = await serveInAMoment();
    const came = await crowd(Array.from({ length: MAX_CONNECTIONS }, (_, n) => 1 + n));
    expect(came.closed()).toBe(0);
    expect(await ask('127.0.0.2')).toBe('');
    expect(came.closed()).toBe(0);
  });

  it('serve one request each, and close', async () => {
    const { ask } = await serve(systemClock);
    expect(await ask()).toMatch(/^HTTP\/1\.1 200 .*\r\nConnection: close\r\n.*\r\n\r\nok\n$/s);
  });

  it.each(['HTTP/1.1', 'HTTP/1.0\r\nConnection: keep-alive'])(
    'end where a second request comes before the first is answered: %j',
    async (version) => {
      let asked = 0;
      const stuck: AdminEndpoint = {
        method: 'GET',
        answer() {
          asked++;
          return new Promise(() => undefined);
        },
      };
      const { open, ask } = await serve(systemClock, { '/stuck': stuck });
      const { closed } = open(`GET /stuck ${version}\r\nHost: localhost\r\n\r\n`.repeat(1000));
      await closed;
      expect(asked).toBeLessThanOrEqual(1);
      expect(await ask()).toMatch(/^HTTP\/1\.1 200 /);
    },
  );

  it('that sent a request while the process was stopped are not timed out', async () => {
    let expire = (): void => undefined;
    const clock: Clock = {
      ...systemClock,
      after(delayMs, callback) {
        if (delayMs === REQUEST_WITHIN_MS) expire = callback;
        return () => undefined;
      },
    };
    const { open } = await serve(clock);
    const { socket, closed, said } = open('');
    const accepted = expire;
    await until(() => expire !== accepted);
    // As after a stop: the timers are looked at first, and then what has come.
    await timersTurn(0);
    socket.write(LIVEZ);
    expire();
    await closed;
    expect(said()).toMatch(/^HTTP\/1\.1 200 /);
  });
});
