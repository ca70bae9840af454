import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isHeldByPeer } from '../../src/proxy/peer-socket.ts';

async function pair(listen: string, host: string): Promise<{ accepted: Socket; peer: Socket }> {
  const server = createServer({ allowHalfOpen: true });
  server.listen(0, listen);
  await once(server, 'listening');
  const accepting = once(server, 'connection');
  const peer = connect({ host, port: (server.address() as AddressInfo).port, allowHalfOpen: true });
  const [accepted] = (await accepting) as [Socket];
  onTestFinished(() => {
    peer.destroy();
    accepted.destroy();
    server.close();
  });
  return { accepted, peer };
}

describe('the other end of a connection', () => {
  it.each([
    ['IPv4', '127.0.0.1', '127.0.0.1'],
    ['IPv6', '::1', '::1'],
    ['IPv4 to a listener for both', '::', '127.0.0.1'],
  ])('is held while it is open, and when it sends no more, over %s', async (_, listen, host) => {
    const { accepted, peer } = await pair(listen, host);
    expect(isHeldByPeer(accepted)).toBe(true);
    const ended = once(accepted.resume(), 'end');
    peer.end();
    await ended;
    expect(isHeldByPeer(accepted)).toBe(true);
  });

  it('is not held once it is closed', async () => {
    const { accepted, peer } = await pair('127.0.0.1', '127.0.0.1');
    const ended = once(accepted.resume(), 'end');
    peer.destroy();
    await ended;
    expect(isHeldByPeer(accepted)).toBe(false);
  });

  it('is not held when it is closed after it sent no more', async () => {
    const { accepted, peer } = await pair('127.0.0.1', '127.0.0.1');
    const ended = once(accepted.resume(), 'end');
    peer.end();
    await ended;
    const closed = once(peer, 'close');
    peer.destroy();
    await closed;
    expect(isHeldByPeer(accepted)).toBe(false);
  });

  it('of a socket that is closed itself is nobody', async () => {
    const { accepted } = await pair('127.0.0.1', '127.0.0.1');
    accepted.destroy();
    expect(isHeldByPeer(accepted)).toBe(false);
  });
});
