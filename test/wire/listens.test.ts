import { describe, expect, it } from 'vitest';
import { get, ok } from './messages.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

describe('the listener', () => {
  it('says which port it was given', async () => {
    const upstream = await startUpstream(answering(ok('here')));
    const sidecar = await startSidecar({ upstream });

    expect(sidecar.address.host).toBe('127.0.0.1');
    expect(sidecar.address.port).toBeGreaterThan(0);
    expect((await sidecar.exchange(get('/'))).body).toBe('here');
  });

  it.each([
    ['a port that is taken', ({ address }: { address: { host: string; port: number } }) => address],
    // 192.0.2.0/24 is for documentation (RFC 5737): no machine has it.
    ["an address that is not the machine's", () => ({ host: '192.0.2.1', port: 0 })],
  ])('refuses %s as a configuration error', async (_, listenAddress) => {
    const upstream = await startUpstream();

    await expect(startSidecar({ upstream, listen: listenAddress(upstream) })).rejects.toMatchObject({
      code: 'configuration',
      message: expect.stringContaining('--listen'),
    });
  });
});
