import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect as connectHttp2 } from 'node:http2';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Duplex } from 'node:stream';
import { connect } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { ShiftedClock } from '../../support/shifted-clock.ts';
import { until } from '../../support/until.ts';
import { selfSigned } from '../../wire/certificate.ts';
import { FakeBearer, FIRST } from '../../wire/fake-bearer.ts';
import { message } from '../../wire/messages.ts';
import { expectProblem } from '../../wire/problem.ts';
import { forwardTo } from '../../wire/sidecar.ts';
import { temporaryFile } from '../../wire/temporary-file.ts';
import {
  HOST,
  type Interception,
  intercepting,
  NEVER_ANSWERED,
  startTlsUpstream,
  tlsOf,
} from './intercepting.ts';

const get = (path: string, host: string) => message(`GET ${path} HTTP/1.1`, [`Host: ${host}`]);

/** An HTTP/2 client through the sidecar, and its one request’s answer. */
async function askOverHttp2(interception: Interception, headers: Record<string, string>) {
  const { socket } = await interception.secured({ ALPNProtocols: ['h2', 'http/1.1'] });
  const session = connectHttp2(`https://${HOST}`, { createConnection: () => socket });
  onTestFinished(() => session.destroy());
  const stream = session.request({ ':path': '/', ...headers });
  const [answered] = (await once(stream, 'response')) as [Record<string, unknown>];
  let body = '';
  for await (const chunk of stream.setEncoding('utf8')) body += chunk;
  return { answered, body };
}

describe('a request inside intercepted TLS', () => {
  it('gets the token over HTTP/1.1, as does the next on the connection', async () => {
    const upstream = await startTlsUpstream();
    const interception = await intercepting(upstream);
    const host = `${HOST}:${upstream.port}`;
    const client = await interception.secured();
    for (const path of ['/first', '/second?x=1']) {
      const answer = await client.send(get(path, host)).response();
      expect([answer.status, answer.body]).toEqual([200, `hello ${path}`]);
    }
    expect(upstream.arrived).toEqual([
      { version: '1.1', path: '/first', host, authorization: FIRST },
      { version: '1.1', path: '/second?x=1', host, authorization: FIRST },
    ]);
    const { sidecar } = interception;
    expect(await sidecar.metric('proxy_requests_total', { route: `forward:${HOST}`, method: 'GET' })).toBe(2);
    expect(
      await sidecar.metric('proxy_requests_total', { route: `forward:${HOST}`, method: 'CONNECT' }),
    ).toBe(1);
    expect(await sidecar.metric('proxy_requests_in_flight')).toBe(0);
  });

  it('gets the token after the clock was corrected, however wrong it was', async () => {
    const upstream = await startTlsUpstream();
    const clock = new ShiftedClock();
    const interception = await intercepting(upstream, { certifiedBy: clock });
    const monthMs = 31 * 24 * 3_600_000;
    clock.suspend(monthMs);
    await expect(interception.secured()).rejects.toThrow('certificate is not yet valid');

    clock.stepBack(monthMs);

    const client = await interception.secured();
    expect((await client.send(get('/', `${HOST}:${upstream.port}`)).response()).status).toBe(200);
  });

  it('gets the token over HTTP/2 if both sides support it', async () => {
    const upstream = await startTlsUpstream();
    const interception = await intercepting(upstream);
    const host = `${HOST}:${upstream.port}`;
    const { answered, body } = await askOverHttp2(interception, { ':authority': host });
    expect([answered[':status'], body]).toEqual([200, 'hello /']);
    expect(upstream.arrived).toEqual([{ version: '2.0', path: '/', host, authorization: FIRST }]);
    // The connection by which the upstream was asked what it speaks carried the request.
    expect(upstream.secured()).toBe(1);
  });

  it('may come in one write with the CONNECT and the end of the handshake', async () => {
    const upstream = await startTlsUpstream();
    const interception = await intercepting(upstream);
    const session = await interception.secured({ maxVersion: 'TLSv1.2' });
    expect((await session.send(get('/', `${HOST}:${upstream.port}`)).response()).status).toBe(200);
  });

  it('has an answer delimited by the connection ended with close_notify', async () => {
    const upstream = await startTlsUpstream();
    const interception = await intercepting(upstream);
    const client = await interception.connected();
    const wire: Buffer[] = [];
    client.socket.removeAllListeners('data');
    const watched = new Duplex({
      read() {},
      write: (chunk: Buffer, _encoding, done) => client.socket.write(chunk, done),
    });
    client.socket.on('data', (chunk: Buffer) => {
      wire.push(chunk);
      watched.push(chunk);
    });
    client.socket.once('end', () => watched.push(null));
    const tls = connect({ socket: watched, ca: interception.root, servername: HOST, maxVersion: 'TLSv1.2' });
    await once(tls, 'secureConnect');
    tls.write(message('GET / HTTP/1.1', [`Host: ${HOST}:${upstream.port}`, 'Connection: close']));
    tls.resume();
    await once(client.socket, 'end');
    // The last record is an alert (RFC 5246 §7.2.1): close_notify.
    const records = Buffer.concat(wire);
    let at = 0;
    let last = 0;
    for (; at < records.length; at += 5 + records.readUInt16BE(at + 3)) last = records[at] as number;
    expect(last).toBe(21);
  });

  it('uses the upstream connection that its own connection authenticated, and no other', async () => {
    const certificate = selfSigned(HOST);
    const users = new WeakMap<object, string>();
    const server = createServer(certificate, ({ socket, headers }, response) => {
      const user = /^NTLM (.+)/.exec(headers.authorization ?? '')?.[1];
      if (user !== undefined) users.set(socket, user);
      response.end(users.get(socket) ?? 'nobody');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    const caFile = await temporaryFile('upstream.crt', certificate.cert);
    const interception = await intercepting(
      { port, caFile, arrived: [], secured: () => 0 },
      { entry: { existingAuthorization: 'keep' } },
    );
    const [alice, nobody] = [await interception.secured(), await interception.secured()];
    const ask = (...lines: string[]) => message('GET / HTTP/1.1', [`Host: ${HOST}:${port}`, ...lines]);
    expect((await alice.send(ask('Authorization: NTLM alice')).response()).body).toBe('alice');
    expect((await nobody.send(ask()).response()).body).toBe('nobody');
    expect((await alice.send(ask()).response()).body).toBe('alice');
  });

  it('may be large in both directions', async () => {
    const upstream = await startTlsUpstream();
    const interception = await intercepting(upstream);
    const client = await interception.secured();
    const body = 'x'.repeat(3_000_000);
    const host = `Host: ${HOST}:${upstream.port}`;
    const post = message('POST /large HTTP/1.1', [host, `Content-Length: ${body.length}`], body);
    expect((await client.send(post).response()).status).toBe(200);
    expect(upstream.arrived.at(-1)?.authorization).toBe(FIRST);
  });

  it('gets 503 without a token', async () => {
    const upstream = await startTlsUpstream();
    const bearer = new FakeBearer({ held: undefined, obtain: () => Promise.reject(new Error('no')) });
    const interception = await intercepting(upstream, { bearer });
    const client = await interception.secured();
    const answer = await client.send(get('/', `${HOST}:${upstream.port}`)).response();
    expect(answer.status).toBeGreaterThanOrEqual(500);
    expect(upstream.arrived).toEqual([]);
  });

  it('may become a WebSocket', async () => {
    const certificate = selfSigned(HOST);
    const server = createServer(certificate);
    const sockets = new WebSocketServer({ server });
    const authorizations: (string | undefined)[] = [];
    sockets.on('connection', (socket, request) => {
      authorizations.push(request.headers.authorization);
      socket.on('message', (data) => socket.send(data));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      for (const client of sockets.clients) client.terminate();
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    const caFile = await temporaryFile('ca.crt', certificate.cert);
    const interception = await intercepting({ port, caFile, arrived: [], secured: () => 0 });
    const { socket } = await interception.secured();
    const webSocket = new WebSocket(`wss://${HOST}:${port}/`, { createConnection: () => socket });
    onTestFinished(() => webSocket.terminate());
    await once(webSocket, 'open');
    const large = Buffer.alloc(1_000_000, 'y');
    webSocket.send(large);
    expect(large.equals((await once(webSocket, 'message'))[0])).toBe(true);
    expect(authorizations).toEqual([FIRST]);
  });
});

describe('ALPN in intercepted TLS', () => {
  it.each([
    ['what the upstream speaks', 'both', ['h2', 'http/1.1'], 'h2'],
    ['HTTP/1.1 if the upstream speaks nothing else', 'http1', ['h2', 'http/1.1'], 'http/1.1'],
    ['HTTP/2 to an app that offers nothing else', 'http1', ['h2'], 'h2'],
    ['HTTP/1.1 to an app that offers nothing else', 'both', ['http/1.1'], 'http/1.1'],
    ['nothing to an app that offers nothing', 'both', undefined, false],
  ] as const)('chooses %s', async (_, speaks, offered, chosen) => {
    const upstream = await startTlsUpstream(speaks);
    const interception = await intercepting(upstream);
    const client = await interception.secured(offered === undefined ? {} : { ALPNProtocols: [...offered] });
    expect(tlsOf(client).alpnProtocol).toBe(chosen);
  });

  it('lets HTTP/2 requests reach an upstream that speaks only HTTP/1.1', async () => {
    const upstream = await startTlsUpstream('http1');
    const interception = await intercepting(upstream);
    const { socket } = await interception.secured({ ALPNProtocols: ['h2'] });
    const session = connectHttp2(`https://${HOST}`, { createConnection: () => socket });
    onTestFinished(() => session.destroy());
    const stream = session.request({ ':path': '/', ':authority': `${HOST}:${upstream.port}` });
    const [answered] = await once(stream, 'response');
    expect(answered[':status']).toBe(200);
    expect(upstream.arrived.map(({ version, authorization }) => [version, authorization])).toEqual([
      ['1.1', FIRST],
    ]);
  });

  it('refuses and counts an app that offers neither protocol', async () => {
    const upstream = await startTlsUpstream();
    const interception = await intercepting(upstream);
    await expect(interception.secured({ ALPNProtocols: ['imap'] })).rejects.toThrow(
      /no application protocol/,
    );
    await until(
      async () =>
        (await interception.sidecar.metric('proxy_errors_total', { error: 'client_tls_error' })) === 1,
    );
  });
});

describe('an intercepted host that does not prove its identity', () => {
  it.each([
    ['has the certificate of another name', selfSigned('evil.example.net')],
    ['has a certificate of an unknown issuer', undefined],
  ])('gets no token because it %s', async (_, certificate) => {
    const upstream = await startTlsUpstream('both', certificate);
    const caFile =
      certificate === undefined ? await temporaryFile('other.crt', selfSigned(HOST).cert) : upstream.caFile;
    const interception = await intercepting({ ...upstream, caFile });
    for (const ALPNProtocols of [['http/1.1'], ['h2', 'http/1.1']]) {
      const client = await interception.secured({ ALPNProtocols });
      expect(tlsOf(client).alpnProtocol).toBe('http/1.1');
      const answer = await client.send(get('/', `${HOST}:${upstream.port}`)).response();
      expectProblem(answer, 'upstream_tls_error');
    }
    expect(upstream.arrived).toEqual([]);
  });
});

describe('a request inside TLS for another host than the CONNECT', () => {
  it.each(['other.example.com', `${HOST}.evil.net`, 'api.example.com:1', '127.0.0.1'])(
    'gets 421 without a token: %s',
    async (host) => {
      const upstream = await startTlsUpstream();
      const interception = await intercepting(upstream, { names: [HOST, 'other.example.com'] });
      const client = await interception.secured();
      expectProblem(await client.send(get('/', host)).response(), 'misdirected_request');
      const { answered } = await askOverHttp2(interception, { ':authority': host });
      expect(answered[':status']).toBe(421);
      expect(upstream.arrived).toEqual([]);
    },
  );

  it('gets 421 if its absolute target names another host', async () => {
    const upstream = await startTlsUpstream();
    const interception = await intercepting(upstream);
    const host = `${HOST}:${upstream.port}`;
    const client = await interception.secured();
    for (const target of [`https://other.example.com:${upstream.port}/`, `http://${host}/`]) {
      expectProblem(await client.send(get(target, host)).response(), 'misdirected_request');
    }
    expect((await client.send(get(`https://${host}/there`, host)).response()).body).toBe('hello /there');
    expect(upstream.arrived.map(({ path }) => path)).toEqual(['/there']);
  });

  it('cannot use a second CONNECT inside the first', async () => {
    const upstream = await startTlsUpstream();
    const interception = await intercepting(upstream);
    const client = await interception.secured();
    const authority = `${HOST}:${upstream.port}`;
    const inner = message(`CONNECT ${authority} HTTP/1.1`, [`Host: ${authority}`]);
    expectProblem(await client.send(inner).response(), 'destination_not_allowed');
  });
});

describe('cross-site requests inside intercepted TLS', () => {
  it('are refused as elsewhere, and same-site ones are not', async () => {
    const upstream = await startTlsUpstream();
    const interception = await intercepting(upstream, { crossSiteRequests: 'refuse' });
    const host = `${HOST}:${upstream.port}`;
    const client = await interception.secured();
    const from = (origin: string) => message('GET / HTTP/1.1', [`Host: ${host}`, `Origin: ${origin}`]);
    expectProblem(await client.send(from('https://evil.example')).response(), 'cross_site_request');
    expect((await client.send(from(`https://${host}`)).response()).status).toBe(200);
    expect(upstream.arrived).toHaveLength(1);
  });
});

it('connect: tunnel turns interception off for new connections to all hosts', async () => {
  const upstream = await startTlsUpstream();
  const interception = await intercepting(upstream, { proxy: { otherHosts: 'pass' } });
  const { port } = upstream;
  const address = { host: HOST, port };
  const off = forwardTo({ address, ...upstream }, {}, { connect: 'tunnel', otherHosts: 'pass' });
  const before = await interception.secured();
  await interception.sidecar.reconfigure({ forwardProxy: off });
  const ca = await readFile(upstream.caFile);
  for (const name of [HOST, 'other.example.com']) {
    const client = await interception.secured({ ca, servername: name }, `${name}:${port}`);
    expect((await client.send(get(`/${name}`, `${name}:${port}`)).response()).status).toBe(200);
  }
  // What was opened before goes on as it began.
  expect((await before.send(get('/before', `${HOST}:${port}`)).response()).status).toBe(200);
  expect(upstream.arrived.map(({ path, authorization }) => [path, authorization])).toEqual([
    [`/${HOST}`, undefined],
    ['/other.example.com', undefined],
    ['/before', FIRST],
  ]);
});

describe('draining intercepted connections', () => {
  it('lets a request inside TLS finish and then closes its connection', async () => {
    const upstream = await startTlsUpstream();
    const interception = await intercepting(upstream);
    const client = await interception.secured();
    const host = `${HOST}:${upstream.port}`;
    expect((await client.send(get('/', host)).response()).status).toBe(200);
    const drained = interception.sidecar.proxy.drain(10_000);
    expect(await client.closed()).toBe('end');
    await drained;
  });

  it('counts a cut request once and not its CONNECT, which had ended', async () => {
    const upstream = await startTlsUpstream();
    const { sidecar, secured } = await intercepting(upstream);
    const client = await secured();
    client.send(get(NEVER_ANSWERED, `${HOST}:${upstream.port}`));
    await until(() => upstream.arrived.length === 1);

    await sidecar.proxy.drain(0);

    const route = `forward:${HOST}`;
    expect(await sidecar.metric('proxy_errors_total', { route, error: 'draining' })).toBe(1);
  });
});
