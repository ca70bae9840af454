import { describe, expect, it } from 'vitest';
import { message } from './messages.ts';
import { expectProblem } from './problem.ts';
import { startUpstream } from './raw-upstream.ts';
import { forwardTo, startSidecar } from './sidecar.ts';

const connectTo = (authority: string) => message(`CONNECT ${authority} HTTP/1.1`, [`Host: ${authority}`]);

/** A sidecar that tunnels to the upstream. */
async function tunnelling() {
  const upstream = await startUpstream(async () => undefined, 'plain');
  const sidecar = await startSidecar({ forwardProxy: forwardTo(upstream, {}, { connect: 'tunnel' }) });
  return { upstream, sidecar };
}

describe('CONNECT to a listed host', () => {
  it('is answered 200 and passes every byte in both directions', async () => {
    const { upstream, sidecar } = await tunnelling();
    const client = await sidecar.connect();
    // What an eager client sends right behind the head must not be lost.
    client.send(`${connectTo(upstream.authority)}GET /early HTTP/1.1\r\nHost: x\r\n\r\n`);
    const head = await client.head();
    expect(head.startLine).toBe('HTTP/1.1 200 Connection Established');
    expect(head.names).toEqual([]);
    const arrived = await upstream.request();
    expect(arrived.head.startLine).toBe('GET /early HTTP/1.1');
    expect(arrived.head.values('authorization')).toEqual([]);
    arrived.connection.send('\x00\xff bytes');
    expect(await client.received.exactly(8)).toBe('\x00\xff bytes');
  });

  it('closes the tunnel when either side closes', async () => {
    const { upstream, sidecar } = await tunnelling();
    const client = await sidecar.connect();
    client.send(`${connectTo(upstream.authority)}GET / HTTP/1.1\r\nHost: x\r\n\r\n`);
    await client.head();
    const arrived = await upstream.request();
    arrived.connection.socket.end();
    client.end();
    await client.closed();
    await sidecar.idle();
    expect(await sidecar.metric('proxy_requests_total', { method: 'CONNECT', code: '200' })).toBe(1);
  });

  it('is answered 502 when the host cannot be reached', async () => {
    const gone = { address: { host: '127.0.0.1', port: 1 } };
    const sidecar = await startSidecar({ forwardProxy: forwardTo(gone, {}, { connect: 'tunnel' }) });
    expectProblem(await sidecar.exchange(connectTo('127.0.0.1:1'), 'CONNECT'), 'upstream_unreachable');
  });
});

it('CONNECT to an unlisted host opens a tunnel when other hosts are allowed', async () => {
  const listed = await startUpstream(undefined, 'plain');
  const other = await startUpstream(undefined, 'plain');
  const sidecar = await startSidecar({
    forwardProxy: forwardTo(listed, {}, { connect: 'tunnel', otherHosts: 'pass' }),
  });
  const client = await sidecar.connect();
  expect((await client.send(connectTo(other.authority)).head()).status).toBe(200);
  client.send('GET / HTTP/1.1\r\nHost: other\r\n\r\n');
  expect((await other.request()).head.values('authorization')).toEqual([]);
});

describe('CONNECT is refused', () => {
  it('by default', async () => {
    const upstream = await startUpstream(undefined, 'plain');
    const sidecar = await startSidecar({ forwardProxy: forwardTo(upstream) });
    expectProblem(await sidecar.exchange(connectTo(upstream.authority)), 'destination_not_allowed');
    expect(upstream.connections).toHaveLength(0);
  });

  it('to an unlisted host', async () => {
    const { sidecar } = await tunnelling();
    const other = await startUpstream(undefined, 'plain');
    expectProblem(await sidecar.exchange(connectTo(other.authority)), 'destination_not_allowed');
    expect(other.connections).toHaveLength(0);
  });

  it('to another port of a listed host', async () => {
    const { sidecar } = await tunnelling();
    expectProblem(await sidecar.exchange(connectTo('127.0.0.1:22')), 'destination_not_allowed');
  });
});
