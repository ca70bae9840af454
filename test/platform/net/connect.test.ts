/** Connections to names with several addresses, of which some do not answer, or answer late. */

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer, type LookupFunction, type OnReadOpts, type Socket } from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { byTheRules, connectTcp, connectTls, findTakeOver } from '../../../src/platform/net/connect.ts';
import { http } from '../../../src/platform/net/node-http.ts';
import { https } from '../../../src/platform/net/node-https.ts';
import { systemClock } from '../../../src/platform/time/clock.ts';
import { startSilentListener } from '../../support/silent-listener.ts';
import { selfSigned } from '../../wire/certificate.ts';

const NAME = 'api.example.com';
const { cert, key } = selfSigned(NAME);

const GOOD = '127.0.0.1';
/** Answers no request for a connection. */
const SILENT = '127.0.0.2';
/** Nobody listens there. */
const CLOSED = '127.0.0.3';
/** Leads nowhere, which the system says at once. */
const UNREACHABLE = '::ffff:0:1';

const finding =
  (...addresses: string[]): LookupFunction =>
  (_name, options, told) => {
    expect(options.all).toBe(true);
    const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    process.nextTick(() => told(null, found));
  };

type Kind = 'TCP' | 'TLS';

/** Echoes, and keeps the names that it was asked for. */
async function startEcho(kind: Kind) {
  const names: unknown[] = [];
  const accepted: Socket[] = [];
  const onConnection = (socket: Socket): void => {
    accepted.push(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk) => socket.write(chunk));
    socket.on('end', () => socket.end());
  };
  const options = {
    cert,
    key,
    allowHalfOpen: true,
    SNICallback(name: string, chosen: (error: null) => void) {
      names.push(name);
      chosen(null);
    },
  };
  const server =
    kind === 'TCP'
      ? createServer({ allowHalfOpen: true }, onConnection)
      : createTlsServer(options, onConnection);
  server.listen(0, GOOD);
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    for (const socket of accepted) socket.destroy();
  });
  return { port: (server.address() as { port: number }).port, names, accepted };
}

interface Dialled {
  readonly port: number;
  readonly host?: string;
  readonly lookup?: LookupFunction;
  readonly session?: Buffer | undefined;
  readonly onread?: OnReadOpts;
  readonly autoSelectFamilyAttemptTimeout?: number;
}

function dial(kind: Kind, options: Dialled, means?: Parameters<typeof connectTls>[1]): Socket {
  const to = { host: NAME, ...options };
  const socket = kind === 'TCP' ? connectTcp(to, means) : connectTls({ ...to, ca: cert }, means);
  onTestFinished(() => {
    socket.destroy();
  });
  return socket;
}

const STANDS = { TCP: 'connect', TLS: 'secureConnect' } as const;

/** What an echo says to a word. */
async function echoOf(socket: Socket, word: string): Promise<string> {
  socket.write(word);
  const [chunk] = (await once(socket, 'data')) as [Buffer];
  return chunk.toString();
}

it('this Node has the internals where they are expected', () => {
  expect(findTakeOver()).toBeDefined();
  expect(findTakeOver({})).toBeUndefined();
});

describe.each(['TCP', 'TLS'] as const)('over %s', (kind) => {
  it.each([
    ['does not answer', [SILENT, GOOD]],
    ['is closed', [CLOSED, GOOD]],
    ['cannot be reached', [UNREACHABLE, GOOD]],
    ['is one of many such', [SILENT, UNREACHABLE, CLOSED, GOOD]],
    ['comes after one that answers', [GOOD, SILENT]],
  ])('a name is reached though an address of it %s', async (_, addresses) => {
    const { port, accepted } = await startEcho(kind);
    await startSilentListener(SILENT, port);
    const socket = dial(kind, { port, lookup: finding(...addresses) });
    await once(socket, STANDS[kind]);
    expect([socket.remoteAddress, socket.remotePort]).toEqual([GOOD, port]);
    expect(await echoOf(socket, 'word')).toBe('word');
    expect(accepted).toHaveLength(1);
  });

  it('what was written before it stood arrives, and the answer in the buffer that was given', async () => {
    const { port } = await startEcho(kind);
    const buffer = Buffer.alloc(64);
    const came = Promise.withResolvers<string>();
    const socket = dial(kind, {
      port,
      lookup: finding(CLOSED, GOOD),
      onread: {
        buffer,
        callback(length, chunk) {
          came.resolve(`${chunk === buffer} ${buffer.toString('latin1', 0, length)}`);
          return true;
        },
      },
    });
    socket.write('early');
    expect(await came.promise).toBe('true early');
    expect(socket.bytesRead).toBeGreaterThan(0);
    socket.end();
    await once(socket, 'close');
  });

  it('a name without an address that answers fails with the reasons', async () => {
    const { port } = await startEcho(kind);
    const socket = dial(kind, { port, lookup: finding(CLOSED, UNREACHABLE) });
    const [error] = (await once(socket, 'error')) as [AggregateError & { code: string }];
    expect(error.code).toBe('ECONNREFUSED');
    expect(error.message).toContain(`${CLOSED}:${port}`);
    expect(error.errors).toHaveLength(2);
  });

  it('a name that is not found fails with the resolver’s error', async () => {
    const lookup: LookupFunction = (_name, _options, told) =>
      told(Object.assign(new Error('not there'), { code: 'ENOTFOUND' }), []);
    const [error] = await once(dial(kind, { port: 1, lookup }), 'error');
    expect(error).toMatchObject({ code: 'ENOTFOUND' });
  });

  it('a connection that is given up during the lookup or the handshake leaves nothing', async () => {
    const { port, accepted } = await startEcho(kind);
    const asked = Promise.withResolvers<() => void>();
    const waiting = dial(kind, {
      port,
      lookup: (...args) => asked.resolve(() => finding(GOOD, GOOD, CLOSED)(...args)),
    });
    const answer = await asked.promise;
    waiting.destroy();
    answer();
    await startSilentListener(SILENT, port);
    const begun = Promise.withResolvers<void>();
    const cancelled = Promise.withResolvers<void>();
    const after = () => {
      begun.resolve();
      return () => cancelled.resolve();
    };
    const means = { clock: { ...systemClock, after }, takeOver: findTakeOver() };
    const racing = dial(kind, { port, lookup: finding(SILENT, GOOD) }, means);
    await begun.promise;
    racing.destroy();
    await Promise.all([once(racing, 'close'), cancelled.promise]);
    expect(accepted).toEqual([]);
  });

  it('a connection that is given up in the turn of an answer stays given up', async () => {
    const { port } = await startEcho(kind);
    let attempts = 0;
    const given = Promise.withResolvers<void>();
    // The race is won in the event after this one, before the socket has closed.
    const takeOver = () => {
      attempts += 1;
    };
    const racing = dial(kind, { port, lookup: finding(GOOD, SILENT) }, { clock: systemClock, takeOver });
    const onAttempt = ({ socket }: { socket: Socket }): void => {
      if (socket === racing) return;
      socket.prependOnceListener('connect', () => {
        racing.destroy();
        given.resolve();
      });
    };
    subscribe('net.client.socket', onAttempt as never);
    onTestFinished(() => void unsubscribe('net.client.socket', onAttempt as never));
    await given.promise;
    await once(racing, 'close');
    expect(attempts).toBe(0);
    expect(racing.destroyed).toBe(true);
  });

  it('on a Node without those internals, addresses are tried one after the other', async () => {
    const { port } = await startEcho(kind);
    const means = { clock: systemClock, takeOver: undefined };
    const socket = dial(kind, { port, lookup: finding(CLOSED, GOOD) }, means);
    await once(socket, STANDS[kind]);
    expect(await echoOf(socket, 'word')).toBe('word');
  });

  it('an agent reaches what answers, keeps its connection, and counts it', async () => {
    const asked: unknown[] = [];
    const listener = (
      request: { socket: { remotePort?: number | undefined } },
      response: { end(text: string): void },
    ) => {
      asked.push(request.socket.remotePort);
      response.end('hello');
    };
    const server = kind === 'TCP' ? http.createServer(listener) : https.createServer({ cert, key }, listener);
    server.listen(0, GOOD);
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    await startSilentListener(SILENT, port);
    const options = { keepAlive: true, maxSockets: 1, lookup: finding(SILENT, GOOD) };
    const agent = byTheRules(
      kind === 'TCP' ? new http.Agent(options) : new https.Agent({ ...options, ca: cert }),
    );
    onTestFinished(() => {
      agent.destroy();
      server.close();
    });
    const scheme = kind === 'TCP' ? 'http' : 'https';
    const ask = (): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const request = http.get(`${scheme}://${NAME}.:${port}`, { agent }, (response) => {
          response.resume().once('end', () => resolve(response.statusCode));
        });
        request.once('error', reject);
      });
    expect(await Promise.all([ask(), ask(), ask()])).toEqual([200, 200, 200]);
    expect(new Set(asked).size).toBe(1);
  });
});

it('an address that answers late goes on beside the next, and is taken', async () => {
  const late = await startSilentListener(GOOD);
  await startSilentListener(SILENT, late.port);
  const delays: number[] = [];
  const clock = {
    ...systemClock,
    after(delayMs: number, call: () => void) {
      delays.push(delayMs);
      return systemClock.after(0, () => {
        call();
        late.answer();
      });
    },
  };
  const lookup = finding(GOOD, SILENT);
  const socket = dial('TCP', { port: late.port, lookup }, { clock, takeOver: findTakeOver() });
  await once(socket, 'connect');
  expect(socket.remoteAddress).toBe(GOOD);
  expect(delays).toEqual([250]);
  expect(await echoOf(socket, 'word')).toBe('word');
});

it.each([
  ['sooner where there is less time', 100, 100],
  ['no later where there is more', 10_000, 250],
])('the next address is tried %s', async (_, attemptMs, delayMs) => {
  const { port } = await startEcho('TCP');
  await startSilentListener(SILENT, port);
  const delays: number[] = [];
  const clock = {
    ...systemClock,
    after(afterMs: number, call: () => void) {
      delays.push(afterMs);
      return systemClock.after(0, call);
    },
  };
  const options = { port, lookup: finding(SILENT, GOOD), autoSelectFamilyAttemptTimeout: attemptMs };
  const socket = dial('TCP', options, { clock, takeOver: findTakeOver() });
  await once(socket, 'connect');
  expect(socket.remoteAddress).toBe(GOOD);
  expect(delays).toEqual([delayMs]);
});

describe('the name that TLS asks for', () => {
  it.each([
    ['is the host', { host: NAME }, NAME],
    ['is without the dot of DNS', { host: `${NAME}.` }, NAME],
    ['is the one that is set, without a dot', { host: 'other.example.net', servername: `${NAME}.` }, NAME],
  ])('%s', async (_, options, name) => {
    const { port, names } = await startEcho('TLS');
    const socket = connectTls({ ...options, port, ca: cert, lookup: finding(GOOD) });
    onTestFinished(() => {
      socket.destroy();
    });
    await once(socket, 'secureConnect');
    expect(names).toEqual([name]);
  });

  it('is none for an address', async () => {
    const { port, names } = await startEcho('TLS');
    const socket = connectTls({ host: GOOD, port, rejectUnauthorized: false });
    onTestFinished(() => {
      socket.destroy();
    });
    await once(socket, 'secureConnect');
    expect(names).toEqual([]);
  });

  it('asks DNS with the dot', async () => {
    const asked = Promise.withResolvers<string>();
    dial('TLS', { host: `${NAME}.`, port: 1, lookup: (name) => asked.resolve(name) });
    expect(await asked.promise).toBe(`${NAME}.`);
  });

  it('is the one of which the certificate is', async () => {
    const { port } = await startEcho('TLS');
    const socket = connectTls({ host: 'other.example.net.', port, ca: cert, lookup: finding(CLOSED, GOOD) });
    const [error] = await once(socket, 'error');
    expect(error).toMatchObject({ code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  });
});

it('a TLS session is reported and resumed if the name has several addresses', async () => {
  const { port } = await startEcho('TLS');
  const secured = async (session?: Buffer) => {
    const socket = dial('TLS', { port, lookup: finding(CLOSED, GOOD), session }) as TLSSocket;
    const told = once(socket, 'session');
    await once(socket, 'secureConnect');
    expect(await echoOf(socket, 'word')).toBe('word');
    return { socket, told };
  };
  const first = await secured();
  const [session] = (await first.told) as [Buffer];
  expect(first.socket.isSessionReused()).toBe(false);
  expect((await secured(session)).socket.isSessionReused()).toBe(true);
});
