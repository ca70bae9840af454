import { once } from 'node:events';
import { createSecureServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { refusingPort } from '../../support/free-port.ts';
import { FIRST } from '../fake-bearer.ts';
import { get, ok, post } from '../messages.ts';
import { expectProblem } from '../problem.ts';
import { answering, inTurn, overTls, startUpstream } from '../raw-upstream.ts';
import { startSidecar } from '../sidecar.ts';
import { type FrameConnection, startFrames, TYPE } from './frame-upstream.ts';
import { HTTP2, loopbackCertificate, startHttp2 } from './node-upstream.ts';

describe('with protocol h2, an upstream that does not speak HTTP/2', () => {
  it('is named in the error together with the setting to change', async () => {
    const upstream = await startUpstream(answering(ok('HTTP/1.1')));
    const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2 } });

    const answer = await sidecar.exchange(get('/'));

    expectProblem(answer, 'upstream_protocol_error');
    expect(JSON.parse(answer.body).detail).toContain('http1 may be right');
  });

  it.runIf(overTls)('and says so by ALPN is sent nothing', async () => {
    const upstream = await startFrames(() => {}, ['http/1.1', 'h2c']);
    const sidecar = await startSidecar({ upstream, route: { protocol: 'h2' } });

    const answer = await sidecar.exchange(get('/'));

    // OpenSSL ends the handshake where nothing is in common.
    expectProblem(answer, 'upstream_tls_error');
    expect(answer.body).not.toContain(FIRST);
  });

  it.each([
    ['garbage', Buffer.from('garbage that is no frame of HTTP/2')],
    ['nothing but a frame that is not SETTINGS', Buffer.from(`000008060000000000${'00'.repeat(8)}`, 'hex')],
  ])('but answers with %s fails the request', async (_, bytes) => {
    const upstream = await startFrames((connection) => connection.send(bytes));
    const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2 } });

    expectProblem(await sidecar.exchange(get('/')), 'upstream_protocol_error');
  });

  it('and sends nothing has its time to answer', async () => {
    const server = createServer((socket) => socket.on('error', () => {}));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    const upstream = {
      address: { host: '127.0.0.1', port },
      protocol: overTls ? ('https' as const) : ('http' as const),
    };
    const timeouts = { connectMs: 200, responseMs: 200 };
    const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2, timeouts } });

    expectProblem(await sidecar.exchange(get('/')), 'upstream_timeout');
  });
});

/** Opens a WebSocket, whatever was asked. */
function answersUpgrade(socket: Socket): void {
  socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n');
}

/**
 * Speaks HTTP/2, and lets those in that offer HTTP/1.1, as Go does: the first connection, which it then closes.
 * @param onHttp1 answers those after the second.
 */
async function startLikeGo(onHttp1?: (socket: Socket) => void) {
  const { caFile, ...certificate } = await loopbackCertificate();
  const answeringHttp1 = createTlsServer(certificate, (socket) => {
    socket.on('error', () => {});
    socket.once('data', () => onHttp1?.(socket));
  });
  const closing = createTlsServer(certificate, (socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end());
  });
  const speaking = createSecureServer(certificate);
  speaking.on('stream', (stream: ServerHttp2Stream) => {
    stream.respond();
    stream.end('fine');
  });
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    const later = onHttp1 === undefined ? speaking : answeringHttp1;
    ([closing, speaking][sockets.length - 1] ?? later).emit('connection', socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { address: { host: '127.0.0.1', port }, protocol: 'https' as const, caFile };
}

describe.runIf(overTls)('an upstream that speaks only HTTP/2, with an HTTP/1.1 app,', () => {
  it.each([
    ['GET', get('/'), ''],
    ['POST', post('/', 'body'), 'body'],
  ])('works with protocol: auto: %s', async (method, bytes, body) => {
    const upstream = await startHttp2(async (arrived) => {
      arrived.stream.end(`${arrived.headers[':method']} ${(await arrived.body()).text}`);
    });
    const sidecar = await startSidecar({ upstream });

    for (let times = 0; times < 2; times++) {
      expect(await sidecar.exchange(bytes)).toMatchObject({ status: 200, body: `${method} ${body}` });
    }
    // What was refused by ALPN, and what carried both.
    expect(upstream.connections()).toBe(2);
  });

  it('gets an upload whole that began before its protocol was known', async () => {
    const upload = 'x'.repeat(5_000_000);
    const upstream = await startHttp2(async (arrived) => {
      arrived.stream.end(`${(await arrived.body()).text.length}`);
    });
    const sidecar = await startSidecar({ upstream });

    const answer = await sidecar.exchange(post('/', upload));

    expect([answer.status, answer.body]).toEqual([200, `${upload.length}`]);
  });

  it('is recognised after it accepted HTTP/1.1 and closed without an answer', async () => {
    const upstream = await startLikeGo();
    const sidecar = await startSidecar({ upstream });

    expectProblem(await sidecar.exchange(get('/')), 'upstream_protocol_error');
    for (let times = 0; times < 2; times++) expect((await sidecar.exchange(get('/'))).body).toBe('fine');
  });

  it('as it first seemed, but HTTP/1.1 too, is sent WebSockets by HTTP/1.1', async () => {
    const upstream = await startLikeGo(answersUpgrade);
    const sidecar = await startSidecar({ upstream });

    expectProblem(await sidecar.exchange(get('/')), 'upstream_protocol_error');
    expect((await sidecar.exchange(get('/'))).body).toBe('fine');
    const client = await sidecar.connect();
    const answer = await client.send(get('/', 'Connection: upgrade', 'Upgrade: websocket')).response();

    expect(answer.status).toBe(101);
  });

  it('is told apart from an HTTP/1.1 upstream that closes, which goes on with HTTP/1.1', async () => {
    const upstream = await startUpstream(
      inTurn((arrived) => arrived.connection.end(), answering(ok('fine'))),
    );
    const sidecar = await startSidecar({ upstream });

    const answer = await sidecar.exchange(get('/'));

    expectProblem(answer, 'upstream_protocol_error');
    expect(JSON.parse(answer.body).detail).toContain('if it speaks HTTP/2 alone, protocol: h2 is right');
    expect((await sidecar.exchange(get('/'))).body).toBe('fine');
  });
});

it('every waiting request fails with upstream_unreachable when nothing listens', async () => {
  const upstream = {
    address: { host: '127.0.0.1', port: await refusingPort() },
    protocol: overTls ? ('https' as const) : ('http' as const),
  };
  const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2 } });

  const answers = await Promise.all([1, 2, 3].map(() => sidecar.exchange(get('/'))));

  for (const answer of answers) expectProblem(answer, 'upstream_unreachable');
});

describe('an HTTP/2 connection to an upstream', () => {
  it('begins with the preface, disables push, and never indexes the token', async () => {
    const upstream = await startFrames();
    const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2 } });

    let connection: FrameConnection | undefined;
    for (const path of ['/1', '/2']) {
      const answer = sidecar.exchange(get(path, 'X-Secret: of-the-app'));
      connection ??= await upstream.connection();
      const { streamId, payload } = await connection.next(TYPE.HEADERS);
      // A literal that is never indexed, with the name at 23 of the static table (RFC 7541 §6.2.3), value as it is.
      const token = payload.indexOf(FIRST, 0, 'latin1');
      expect(payload.subarray(token - 3, token).toString('hex')).toBe(
        `1f08${FIRST.length.toString(16).padStart(2, '0')}`,
      );
      expect(payload.includes('of-the-app')).toBe(true);
      connection.answer(streamId, 'x');
      await answer;
    }

    expect(connection?.preface).toBe('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    const settings = connection?.all(TYPE.SETTINGS)[0]?.payload.toString('hex');
    expect(settings).toContain('000200000000');
    expect(settings).toContain('000100001000');
  });

  it('answers PING', async () => {
    const upstream = await startFrames();
    const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2 } });
    const answer = sidecar.exchange(get('/'));
    const connection = await upstream.connection();
    const { streamId } = await connection.next(TYPE.HEADERS);

    connection.send(Buffer.from('0000080600000000000102030405060708', 'hex'));

    const { flags, payload } = await connection.next(TYPE.PING);
    expect([flags, payload.toString('hex')]).toEqual([1, '0102030405060708']);
    connection.answer(streamId, 'x');
    await answer;
  });
});
