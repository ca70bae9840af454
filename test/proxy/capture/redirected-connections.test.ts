/** Apps whose connections the system sends to the sidecar: listed hosts get the token, and all else goes where it was going. */

import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { type AddressInfo, connect as connectTcp, createServer, Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ListenAddress } from '../../../src/platform/net/address.ts';
import { systemNetwork } from '../../../src/proxy/io/network.ts';
import { freePort, refusingPort } from '../../support/free-port.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { until } from '../../support/until.ts';
import { selfSigned } from '../../wire/certificate.ts';
import { FIRST } from '../../wire/fake-bearer.ts';
import { stillQueues } from '../../wire/kernel-queues.ts';
import { message } from '../../wire/messages.ts';
import { expectProblem } from '../../wire/problem.ts';
import { RawClient } from '../../wire/raw-client.ts';
import { ReceivedBytes } from '../../wire/received-bytes.ts';
import { readBySidecar } from '../../wire/sidecar-socket.ts';
import { helloOf } from '../tls/hello.ts';
import { HOST, startTlsUpstream, tlsOf, type Upstream } from '../tls/intercepting.ts';
import { redirecting } from './redirecting.ts';

const MAX_HANDSHAKES = 256;

const SERVER_FIRST_TIMEOUT_MS = 1_000;

const SNIFF_TIMEOUT_MS = 10_000;

const get = (path: string, host: string) => message(`GET ${path} HTTP/1.1`, [`Host: ${host}`]);

const addressOf = ({ port }: Pick<Upstream, 'port'>): ListenAddress => ({ host: '127.0.0.1', port });

/** A server of bytes: each connection is the test's. */
async function startServer() {
  const accepted: { socket: Socket; received: ReceivedBytes }[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {});
    onTestFinished(() => {
      socket.destroy();
    });
    accepted.push({ socket, received: new ReceivedBytes(socket) });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
  });
  const address: ListenAddress = { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
  return {
    address,
    accepted,
    async connection() {
      await until(() => accepted.length > 0);
      return accepted[0] as (typeof accepted)[0];
    },
  };
}

describe('a redirected connection to a listed host', () => {
  it('is recognised by SNI, its TLS ends in the sidecar, and requests get the token', async () => {
    const upstream = await startTlsUpstream();
    const { sidecar, secured, served } = await redirecting({
      original: addressOf(upstream),
      caFile: upstream.caFile,
    });
    const client = await secured();
    const host = `${HOST}:${upstream.port}`;
    for (const path of ['/first', '/second']) {
      expect((await client.send(get(path, host)).response()).body).toBe(`hello ${path}`);
    }
    expect(upstream.arrived.map(({ path, authorization }) => [path, authorization])).toEqual([
      ['/first', FIRST],
      ['/second', FIRST],
    ]);
    expect(await sidecar.metric('proxy_requests_total', { route: `redirect:${HOST}` })).toBe(2);
    expect(await served('listed')).toBe(1);
  });

  it('uses HTTP/2 if the host does', async () => {
    const upstream = await startTlsUpstream();
    const { secured } = await redirecting({ original: addressOf(upstream), caFile: upstream.caFile });
    const client = await secured({ ALPNProtocols: ['h2', 'http/1.1'] });
    expect(tlsOf(client).alpnProtocol).toBe('h2');
    const session = connectHttp2(`https://${HOST}`, { createConnection: () => client.socket });
    onTestFinished(() => session.destroy());
    const stream = session.request({ ':path': '/', ':authority': `${HOST}:${upstream.port}` });
    const [answered] = await once(stream, 'response');
    expect(answered[':status']).toBe(200);
    expect(upstream.arrived.map(({ version, authorization }) => [version, authorization])).toEqual([
      ['2.0', FIRST],
    ]);
  });

  it('is recognised by Host in clear, in any segmentation, and leaves over TLS', async () => {
    const upstream = await startTlsUpstream();
    const { connected } = await redirecting({ original: addressOf(upstream), caFile: upstream.caFile });
    const client = await connected();
    const whole = get('/clear', `${HOST}:${upstream.port}`);
    client.socket.setNoDelay(true);
    for (const octet of whole) {
      client.send(octet);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect((await client.response()).body).toBe('hello /clear');
    expect(upstream.arrived.map(({ authorization }) => authorization)).toEqual([FIRST]);
    const again = await client.send(get('/again', `${HOST}:${upstream.port}`)).response();
    expect(again.body).toBe('hello /again');
  });

  it('works over IPv6', async () => {
    const upstream = await startTlsUpstream();
    const { connected, ipv6 } = await redirecting({ original: addressOf(upstream), caFile: upstream.caFile });
    const answer = await (await connected(ipv6)).send(get('/', `${HOST}:${upstream.port}`)).response();
    expect(answer.status).toBe(200);
  });

  it('that is silent at first is still recognised when it sends something', async () => {
    const clock = new ManualClock();
    const upstream = await startTlsUpstream();
    const server = await startServer();
    const original = { ...addressOf(upstream) };
    // Whoever passes is led to the server of bytes.
    const { connected } = await redirecting({
      original,
      caFile: upstream.caFile,
      clock,
      network: {
        ...systemNetwork,
        connectTcp: (options) => systemNetwork.connectTcp({ ...options, ...server.address }),
      },
    });
    const client = await connected();
    await clock.advance(SERVER_FIRST_TIMEOUT_MS);
    const { received } = await server.connection();
    client.send(await helloOf({ servername: HOST }));
    const head = Buffer.from(await client.received.exactly(6), 'latin1');
    // A handshake record with a ServerHello, of the sidecar's.
    expect([head[0], head[5]]).toEqual([22, 2]);
    await received.ended();
    expect(received.text).toBe('');
  });

  it('has the whole naming timeout from its first octet on, however late that comes', async () => {
    const clock = new ManualClock();
    const upstream = await startTlsUpstream();
    const server = await startServer();
    const { connected, served } = await redirecting({
      original: addressOf(upstream),
      caFile: upstream.caFile,
      passing: { connectMs: 60_000, responseMs: 60_000, idleMs: 600_000 },
      clock,
      network: {
        ...systemNetwork,
        connectTcp: (options) => systemNetwork.connectTcp({ ...options, ...server.address }),
      },
    });
    const client = await connected();
    await clock.advance(SERVER_FIRST_TIMEOUT_MS);
    await server.connection();
    await clock.advance(SNIFF_TIMEOUT_MS);
    const hello = await helloOf({ servername: HOST });
    client.send(hello.subarray(0, 100));
    await readBySidecar(client);
    await clock.advance(SNIFF_TIMEOUT_MS - 1);
    client.send(hello.subarray(100));
    await until(async () => (await served('listed')) === 1);
    expect(await served('passed')).toBe(0);
  });

  it.each(['', ' ', '\t \t'])(
    'is recognised by a Host with any number of blanks around it: %j',
    async (blank) => {
      const upstream = await startTlsUpstream();
      const { connected } = await redirecting({ original: addressOf(upstream), caFile: upstream.caFile });
      const client = await connected();
      const field = `Host:${blank.repeat(300)}${HOST}:${upstream.port}${blank.repeat(300)}`;
      client.send(message('GET /blank HTTP/1.1', [field]));
      expect((await client.response()).body).toBe('hello /blank');
    },
  );

  it('cannot request another host inside its TLS', async () => {
    const upstream = await startTlsUpstream();
    const { secured } = await redirecting({ original: addressOf(upstream), caFile: upstream.caFile });
    for (const host of ['other.example.com', `x${HOST}`, '127.0.0.1', `${HOST}:1`]) {
      const answer = await (await secured()).send(get('/', host)).response();
      expectProblem(answer, 'misdirected_request');
    }
    expect(upstream.arrived).toEqual([]);
  });

  it('cannot request another host later in clear, by Host or by an absolute URL', async () => {
    const upstream = await startTlsUpstream();
    const { connected } = await redirecting({ original: addressOf(upstream), caFile: upstream.caFile });
    const host = `${HOST}:${upstream.port}`;
    const other = `other.example.com:${upstream.port}`;
    const client = await connected();
    expect((await client.send(get('/first', host)).response()).status).toBe(200);
    for (const request of [get('/', other), get(`http://${other}/`, host), get(`http://${other}/`, other)]) {
      expectProblem(await client.send(request).response(), 'misdirected_request');
    }
    expect(upstream.arrived.map(({ path }) => path)).toEqual(['/first']);
  });

  it('gets no token if the host does not prove its identity', async () => {
    const upstream = await startTlsUpstream('both', selfSigned('evil.example.net'));
    const { secured } = await redirecting({ original: addressOf(upstream), caFile: upstream.caFile });
    const answer = await (await secured()).send(get('/', `${HOST}:${upstream.port}`)).response();
    expectProblem(answer, 'upstream_tls_error');
    expect(upstream.arrived).toEqual([]);
  });

  it('whose app does not trust the sidecar is counted and not bypassed', async () => {
    const upstream = await startTlsUpstream();
    const { secured, counted } = await redirecting({
      original: addressOf(upstream),
      caFile: upstream.caFile,
    });
    await expect(secured({ ca: [] })).rejects.toThrow();
    await counted('client_rejected_certificate');
    expect(upstream.arrived).toEqual([]);
  });

  it('is refused when too many handshakes are under way', async () => {
    const upstream = await startTlsUpstream();
    const { connected, counted, served } = await redirecting({
      original: addressOf(upstream),
      caFile: upstream.caFile,
      // Its upstream, which would be asked what it speaks, is never reached.
      network: {
        ...systemNetwork,
        connectTls: (options) => systemNetwork.connectTls({ ...options, host: '192.0.2.1' }),
      },
    });
    const hello = await helloOf({ servername: HOST, ALPNProtocols: ['h2', 'http/1.1'] });
    for (let count = 0; count < MAX_HANDSHAKES; count++) (await connected()).send(hello);
    await until(async () => (await served('listed')) === MAX_HANDSHAKES);
    const client = (await connected()).send(hello);
    expect(await client.closed()).toBe('reset');
    await counted('overloaded');
  });
});

describe('any other redirected connection is passed through byte for byte', () => {
  it.each([
    ['an unlisted name', 'other.example.com'],
    ['a name that begins alike', `${HOST}.evil.example.net`],
    ['a name that ends alike', `x${HOST}`],
    ['a name below', `below.${HOST}`],
    ['no name', ''],
  ])('when it uses TLS with %s', async (_, servername) => {
    const server = await startServer();
    const { connected, served } = await redirecting({ original: server.address });
    const hello = await helloOf({ servername });
    (await connected()).send(hello);
    const { received } = await server.connection();
    expect(await received.exactly(hello.length)).toBe(hello.toString('latin1'));
    expect(await served('passed')).toBe(1);
  });

  it.each(['evil.co\0', 'a\r\n\r\nget', 'a/../../', 'a@b.....', '%00.-a-.', 'a b\tc\xad.'])(
    'when its SNI is not a host name although it ends like a listed wildcard: %j',
    async (odd) => {
      const server = await startServer();
      const { connected, served } = await redirecting({
        original: server.address,
        entry: { host: '*.example.com' },
      });
      const hello = await helloOf({ servername: 'abcdefgh.example.com', ALPNProtocols: ['h2', 'http/1.1'] });
      Buffer.from(odd.padEnd(8, '.'), 'latin1').copy(hello, hello.indexOf('abcdefgh'), 0, 8);
      (await connected()).send(hello);
      const { received } = await server.connection();
      expect(await received.exactly(hello.length)).toBe(hello.toString('latin1'));
      expect(await served('listed')).toBe(0);
    },
  );

  it.each([
    ['HTTP for another host', get('/', 'other.example.com')],
    ['CONNECT, as to a proxy', message(`CONNECT ${HOST}:443 HTTP/1.1`, [`Host: ${HOST}:443`])],
    [
      'a request to a proxy, which names a listed host',
      message(`GET http://${HOST}/ HTTP/1.1`, [`Host: ${HOST}`]),
    ],
    ['the beginning of one', `GET http://${HOST}/ HTTP/1.1\r\n`],
    ['a request to a proxy, by another scheme', message(`GET HTTPS://${HOST}/ HTTP/1.1`, [`Host: ${HOST}`])],
    ['the beginning of a CONNECT', `CONNECT ${HOST}:443 HTTP/1.1\r\n`],
    ['HTTP for an address', get('/', '127.0.0.1')],
    ['HTTP for a name that resembles the listed one', get('/', `x${HOST}`)],
    ['HTTP without a name', 'GET / HTTP/1.0\r\n\r\n'],
    ['HTTP/2 in clear', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['SSH', 'SSH-2.0-client\r\n'],
    ['an unknown protocol', '\0\u0001\u0002'],
    ['a record of TLS that is none', '\u0016\u0002\u0000'],
    ['a head without end', `GET /${'a'.repeat(20_000)}`],
  ])('when it sends %s', async (_, octets) => {
    const server = await startServer();
    const { connected, served } = await redirecting({ original: server.address });
    (await connected()).send(octets);
    const { received } = await server.connection();
    expect(await received.exactly(octets.length)).toBe(octets);
    expect(await served('passed')).toBe(1);
    expect(await served('listed')).toBe(0);
  });

  it('by the configuration that was in use when it began', async () => {
    const clock = new ManualClock();
    const server = await startServer();
    const { sidecar, connected, served } = await redirecting({ original: server.address, clock });
    const client = await connected();
    await clock.advance(SERVER_FIRST_TIMEOUT_MS);
    const { received } = await server.connection();
    // Whoever redirects no longer knows of such connections.
    await sidecar.reconfigure({});
    client.send('hello\r\n');
    expect(await received.through('\r\n')).toBe('hello\r\n');
    expect(await served('passed')).toBe(1);
  });

  it('with its own TLS from end to end', async () => {
    const upstream = await startTlsUpstream();
    const { secured } = await redirecting({
      original: addressOf(upstream),
      entry: { host: 'listed.example.net' },
    });
    const client = await secured({ rejectUnauthorized: false });
    expect(tlsOf(client).getPeerCertificate().subject.CN).toBe(tlsOf(client).getPeerCertificate().issuer.CN);
    expect((await client.send(get('/', HOST)).response()).status).toBe(200);
    expect(upstream.arrived.map(({ authorization }) => authorization)).toEqual([undefined]);
  });

  it('for any amount of data in both directions, with each half-close passed on', async () => {
    const server = await startServer();
    const { connected } = await redirecting({ original: server.address });
    const client = await connected();
    const size = 4 * 1024 * 1024;
    client.send(Buffer.alloc(size, 'a'));
    client.end();
    const { socket, received } = await server.connection();
    received.discard();
    expect(await received.ended()).toBe('end');
    expect(received.count).toBe(size);
    client.received.discard();
    socket.end(Buffer.alloc(size, 'b'));
    expect(await client.closed()).toBe('end');
    expect(client.received.count).toBe(size);
  });

  it('when the server speaks first', async () => {
    const clock = new ManualClock();
    const server = await startServer();
    const { connected } = await redirecting({ original: server.address, clock });
    const client = await connected();
    await clock.advance(SERVER_FIRST_TIMEOUT_MS);
    const { socket, received } = await server.connection();
    socket.write('220 hello\r\n');
    expect(await client.received.through('\r\n')).toBe('220 hello\r\n');
    client.send('EHLO me\r\n');
    expect(await received.through('\r\n')).toBe('EHLO me\r\n');
  });

  it('when the app ends it without sending, and the server sees that end', async () => {
    const server = await startServer();
    const { connected } = await redirecting({ original: server.address });
    (await connected()).end();
    const { received } = await server.connection();
    expect(await received.ended()).toBe('end');
  });

  it('when it does not name a host in time, and its outcome is logged', async () => {
    const clock = new ManualClock();
    const server = await startServer();
    const { connected } = await redirecting({ original: server.address, clock });
    const half = (await helloOf({ servername: HOST })).subarray(0, 100);
    const client = (await connected()).send(half);
    await until(() => clock.pendingTimers > 0);
    await clock.advance(SNIFF_TIMEOUT_MS - 1);
    expect(server.accepted).toEqual([]);
    await clock.advance(1);
    const { received } = await server.connection();
    expect(await received.exactly(100)).toBe(half.toString('latin1'));
    client.destroy();
    await received.ended();
  });

  it('with an idle timeout of its own, not that of a listed host', async () => {
    const clock = new ManualClock();
    const server = await startServer();
    const { connected } = await redirecting({
      original: server.address,
      entry: { timeouts: { connectMs: 1, responseMs: 1, idleMs: 300 } },
      clock,
    });
    const client = (await connected()).send('SSH-2.0-client\r\n');
    const { socket, received } = await server.connection();
    await received.through('\r\n');
    await clock.advance(9_999);
    socket.write('SSH-2.0-server\r\n');
    expect(await client.received.through('\r\n')).toBe('SSH-2.0-server\r\n');
    await clock.advance(10_000);
    await client.closed();
  });

  it('until neither side has sent anything for the idle timeout', async () => {
    const clock = new ManualClock();
    const server = await startServer();
    const { connected } = await redirecting({ original: server.address, clock });
    const client = await connected();
    await clock.advance(SERVER_FIRST_TIMEOUT_MS);
    const { received } = await server.connection();
    await clock.advance(10_000);
    await client.closed();
    await received.ended();
  });

  it.each([
    [80, 'TLS', async () => await helloOf({ servername: HOST })],
    [443, 'HTTP in clear', async () => Buffer.from(get('/', HOST))],
  ])('to port %i: %s for a listed host', async (port, _, octetsOf) => {
    const server = await startServer();
    const { connected } = await redirecting({
      original: { host: '127.0.0.1', port },
      network: {
        ...systemNetwork,
        connectTcp: (options) => systemNetwork.connectTcp({ ...options, ...server.address }),
      },
    });
    const octets = await octetsOf();
    (await connected()).send(octets);
    const { received } = await server.connection();
    expect(await received.exactly(octets.length)).toBe(octets.toString('latin1'));
  });
});

describe('a redirected connection that leads nowhere', () => {
  it('is reset and counted when nothing listens at its destination', async () => {
    const port = await refusingPort();
    const { connected, counted, served } = await redirecting({ original: { host: '127.0.0.1', port } });
    const client = (await connected()).send(get('/', 'other.example.com'));
    expect(await client.closed()).toBe('reset');
    await counted('upstream_unreachable');
    expect(await served('refused')).toBe(1);
    expect(await served('passed')).toBe(0);
  });

  it('is closed when it was not redirected but opened directly', async () => {
    const { connected, counted, served } = await redirecting({ original: undefined });
    await (await connected()).closed();
    await counted('destination_not_allowed');
    expect(await served('refused')).toBe(1);
  });

  it('is recognised as the sidecar’s own, which would loop', async () => {
    const original = { host: '127.0.0.1', port: 80 };
    let back: AddressInfo | undefined;
    const redirectingHere = await redirecting({
      original,
      network: {
        ...systemNetwork,
        connectTcp(options) {
          const { address: host = '', port = 0 } = back ?? {};
          const socket = systemNetwork.connectTcp({ ...options, host, port });
          // What is redirected is shown where it was going.
          Object.defineProperty(socket, 'remotePort', { value: original.port });
          return socket;
        },
      },
    });
    back = redirectingHere.ipv4;
    const client = (await redirectingHere.connected()).send(get('/', 'other.example.com'));
    await client.closed();
    await redirectingHere.counted('loop_detected');
    expect(await redirectingHere.served('refused')).toBe(1);
  });

  it('is not taken for the sidecar’s own because it uses the same local port', async () => {
    const server = await startServer();
    const { host } = server.address;
    const original = { ...server.address };
    const ownEnd = { localAddress: host, localPort: await freePort() };
    const { connected, ipv4, served } = await redirecting({
      original,
      network: {
        ...systemNetwork,
        // Every address is the server's.
        connectTcp: (options) =>
          systemNetwork.connectTcp({ ...options, host, ...(options.host === host ? ownEnd : {}) }),
      },
    });
    (await connected()).send('SSH-2.0-first\r\n');
    await until(async () => (await served('passed')) === 1);
    original.host = '127.0.0.2';
    const socket = connectTcp({ host: ipv4.address, port: ipv4.port, ...ownEnd });
    onTestFinished(() => void socket.destroy());
    await once(socket, 'connect');
    new RawClient(socket).send('SSH-2.0-second\r\n');
    await until(async () => (await served('passed')) + (await served('refused')) === 2);
    expect(await served('refused')).toBe(0);
    await until(() => server.accepted.length === 2);
    expect(await server.accepted[1]?.received.through('\r\n')).toBe('SSH-2.0-second\r\n');
  });

  it('cannot reach the sidecar’s own listeners', async () => {
    const own = { host: '127.0.0.1', port: 0 };
    const { sidecar, connected, counted } = await redirecting({ original: own });
    own.port = sidecar.address.port;
    const client = (await connected()).send(get('/', 'other.example.com'));
    expect(await client.closed()).toBe('reset');
    await counted('destination_not_allowed');
  });

  it('leaves nothing behind when the app goes before sending anything', async () => {
    const clock = new ManualClock();
    const server = await startServer();
    const { sidecar, connected, served } = await redirecting({ original: server.address, clock });
    const client = await connected();
    client.socket.resetAndDestroy();
    await sidecar.proxy.whenUnused(1_000_000);
    expect(server.accepted).toEqual([]);
    expect(await served('left')).toBe(1);
  });

  it('counts as left by the app when it ends before the way to the server is open', async () => {
    const dialled: Socket[] = [];
    const { sidecar, connected, served } = await redirecting({
      original: { host: '192.0.2.1', port: 9 },
      network: {
        ...systemNetwork,
        connectTcp() {
          const never = new Socket();
          dialled.push(never);
          return never;
        },
      },
    });
    (await connected()).send(get('/', 'other.example.com'));
    await until(() => dialled.length > 0);
    await sidecar.proxy.drain(0);
    expect(dialled.map(({ destroyed }) => destroyed)).toEqual([true]);
    expect(await served('left')).toBe(1);
    expect(await served('refused')).toBe(0);
    expect(await served('passed')).toBe(0);
  });
});

it('a host removed from the list gets no more tokens, on old or new connections', async () => {
  const upstream = await startTlsUpstream();
  const { relist, secured } = await redirecting({ original: addressOf(upstream), caFile: upstream.caFile });
  const host = `${HOST}:${upstream.port}`;
  const client = await secured();
  expect((await client.send(get('/before', host)).response()).status).toBe(200);
  await relist('other.example.com');
  expectProblem(await client.send(get('/on-the-old-one', host)).response(), 'destination_not_allowed');
  const own = await secured({ rejectUnauthorized: false });
  expect((await own.send(get('/on-a-new-one', host)).response()).status).toBe(200);
  expect(upstream.arrived.map(({ path, authorization }) => [path, authorization])).toEqual([
    ['/before', FIRST],
    ['/on-a-new-one', undefined],
  ]);
});

describe('draining redirected connections', () => {
  it('resets those cut before all bytes were read, because a FIN would say that all was sent', async () => {
    const server = await startServer();
    const { sidecar, ipv4 } = await redirecting({ original: server.address });
    const app = new Socket({ allowHalfOpen: true });
    onTestFinished(() => void app.destroy());
    let how = 'nothing';
    app.on('end', () => (how = 'end')).on('error', () => (how = 'reset'));
    app.connect(ipv4.port, ipv4.address);
    app.pause();
    app.write('SSH-2.0-app\r\n');
    const { socket } = await server.connection();
    socket.write(Buffer.alloc(64 * 1024 * 1024));
    await stillQueues([app], () => socket.writableLength, 6);
    await sidecar.proxy.drain(0);
    app.resume();
    await until(() => how !== 'nothing');
    expect(how).toBe('reset');
  });

  it('ends silent and idle ones and lets the others finish', async () => {
    const upstream = await startTlsUpstream();
    const { sidecar, secured, connected } = await redirecting({
      original: addressOf(upstream),
      caFile: upstream.caFile,
    });
    const [idle, silent] = [await secured(), await connected()];
    expect((await idle.send(get('/', `${HOST}:${upstream.port}`)).response()).status).toBe(200);
    const drained = sidecar.proxy.drain(10_000);
    expect(await idle.closed()).toBe('end');
    expect(await silent.closed()).toBe('end');
    await drained;
  });
});
