import { describe, expect, it } from 'vitest';
import { ok } from '../messages.ts';
import { startUpstream } from '../raw-upstream.ts';
import { forwardTo, startSidecar } from '../sidecar.ts';
import { Code, reset } from './frames.ts';
import { expectHttp2Problem } from './problem.ts';
import { connectHttp2 } from './raw-http2-client.ts';

const HEAD = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

/** A sidecar that tunnels to the upstream, and a client of it. */
async function tunnelling() {
  const upstream = await startUpstream(async () => undefined, 'plain');
  const sidecar = await startSidecar({ forwardProxy: forwardTo(upstream, {}, { connect: 'tunnel' }) });
  const client = await connectHttp2(sidecar);
  const connect = () =>
    client.request([':method', 'CONNECT', ':authority', upstream.authority], { endStream: false });
  return { upstream, sidecar, client, connect };
}

describe('CONNECT over HTTP/2', () => {
  it('makes the stream a tunnel that passes every byte in both directions', async () => {
    const { upstream, client, connect } = await tunnelling();
    const stream = connect();
    client.data(stream, HEAD);
    const head = await client.head(stream);
    expect(head.fields).toEqual([':status', '200']);
    const arrived = await upstream.request();
    expect(arrived.head.values('authorization')).toEqual([]);
    arrived.connection.send('\x00\xff bytes');
    await client.until(() => client.soFar(stream).body === '\x00\xff bytes');
    client.data(stream, 'more');
    await arrived.connection.received.contains('more');
  });

  it('shares its connection with other streams', async () => {
    const { upstream, client, connect } = await tunnelling();
    const streams = [connect(), connect()];
    for (const [index, stream] of streams.entries()) client.data(stream, HEAD.replace('/ ', `/${index} `));
    const arrived = [await upstream.request(), await upstream.request()];
    for (const { head, connection } of arrived) connection.send(head.target);
    await client.until(() => streams.every((stream, index) => client.soFar(stream).body === `/${index}`));
  });

  it('ends each direction independently', async () => {
    const { upstream, sidecar, client, connect } = await tunnelling();
    const stream = connect();
    client.data(stream, HEAD);
    const arrived = await upstream.request();
    client.data(stream, 'last words', true);
    await arrived.connection.received.contains('last words');
    expect(await arrived.connection.closed()).toBe('end');
    arrived.connection.send('last answer');
    arrived.connection.end();
    expect(await client.answer(stream)).toMatchObject({ body: 'last answer', ended: true, reset: undefined });
    await sidecar.idle();
    expect(await sidecar.metric('proxy_requests_total', { method: 'CONNECT', code: '200' })).toBe(1);
  });

  it('ends the stream towards the app when the upstream ends first, and the app may go on', async () => {
    const { upstream, client, connect } = await tunnelling();
    const stream = connect();
    client.data(stream, HEAD);
    const arrived = await upstream.request();
    arrived.connection.send('bye');
    arrived.connection.socket.end();
    await client.until(() => client.soFar(stream).ended);
    client.data(stream, 'and more', true);
    await arrived.connection.received.contains('and more');
  });

  it('closes the upstream connection when the app resets the stream', async () => {
    const { upstream, sidecar, client, connect } = await tunnelling();
    const stream = connect();
    client.data(stream, HEAD);
    const arrived = await upstream.request();
    client.send(reset(stream, Code.CANCEL));
    expect(await arrived.connection.closed()).toBe('reset');
    await sidecar.idle();
  });

  it('resets the stream when the upstream resets its connection', async () => {
    const { upstream, sidecar, client, connect } = await tunnelling();
    const stream = connect();
    client.data(stream, HEAD);
    const arrived = await upstream.request();
    arrived.connection.reset();
    expect(await client.resetCode(stream)).toBe(Code.CONNECT_ERROR);
    await sidecar.idle();
    await client.fence();
  });

  it('closes the upstream connection when the app disconnects', async () => {
    const { upstream, sidecar, client, connect } = await tunnelling();
    client.data(connect(), HEAD);
    const arrived = await upstream.request();
    client.socket.destroy();
    await arrived.connection.closed();
    await sidecar.idle();
  });

  it('is cut when nothing moves', async () => {
    const upstream = await startUpstream(async () => undefined, 'plain');
    const timeouts = { connectMs: 10_000, responseMs: 10_000, idleMs: 100 };
    const sidecar = await startSidecar({
      forwardProxy: forwardTo(upstream, { timeouts }, { connect: 'tunnel' }),
    });
    const client = await connectHttp2(sidecar);
    const stream = client.request([':method', 'CONNECT', ':authority', upstream.authority], {
      endStream: false,
    });
    client.data(stream, HEAD);
    const arrived = await upstream.request();
    expect(await client.resetCode(stream)).toBe(Code.CANCEL);
    await arrived.connection.closed();
  });

  it('allows only DATA: HEADERS reset it', async () => {
    const { client, connect } = await tunnelling();
    const stream = connect();
    await client.head(stream);
    client.headers(stream, ['x-trailer', '1'], true);
    expect(await client.resetCode(stream)).toBe(Code.PROTOCOL_ERROR);
  });

  it('is answered 502 when the host cannot be reached', async () => {
    const gone = { address: { host: '127.0.0.1', port: 1 } };
    const sidecar = await startSidecar({ forwardProxy: forwardTo(gone, {}, { connect: 'tunnel' }) });
    const client = await connectHttp2(sidecar);
    const stream = client.request([':method', 'CONNECT', ':authority', '127.0.0.1:1'], { endStream: false });
    expectHttp2Problem(await client.answer(stream), 'upstream_unreachable');
    expect(await client.resetCode(stream)).toBe(Code.NO_ERROR);
  });

  it('is refused by default', async () => {
    const upstream = await startUpstream((arrived) => arrived.answer(ok()), 'plain');
    const sidecar = await startSidecar({ forwardProxy: forwardTo(upstream) });
    const client = await connectHttp2(sidecar);
    const stream = client.request([':method', 'CONNECT', ':authority', upstream.authority], {
      endStream: false,
    });
    expectHttp2Problem(await client.answer(stream), 'destination_not_allowed');
    expect(upstream.connections).toHaveLength(0);
  });

  it('with a path or scheme is malformed', async () => {
    const { client, upstream } = await tunnelling();
    const stream = client.request(
      [':method', 'CONNECT', ':authority', upstream.authority, ':scheme', 'http', ':path', '/'],
      { endStream: false },
    );
    expect(await client.resetCode(stream)).toBe(Code.PROTOCOL_ERROR);
  });
});
