import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { podman } from './container-tools.ts';
import { openShop, type Shop } from './shop.ts';

describe.skipIf(inject('imageUnavailable') !== undefined)('check in the container of a live sidecar', () => {
  let shop: Shop;
  beforeAll(async () => {
    shop = await openShop('check', 'the-secret-of-the-shop');
  });
  afterAll(() => shop?.remove());

  /** As `kubectl exec` runs it. */
  const check = (...args: string[]) =>
    podman('exec', shop.sidecar.name, 'node', '/app/dist/token-sidecar.js', 'check', ...args);

  it('finds that all is well, by its own settings and beside the listeners of the sidecar', async () => {
    const output = await check('--probe=/');
    expect(output).toMatch(/^ok {4}proxy: listener +127\.0\.0\.1:15080: the sidecar listens there$/m);
    expect(output).toMatch(/^ok {4}admin: listener .*: the sidecar listens there$/m);
    expect(output).toMatch(/^ok {4}upstream request .* with the token: 200$/m);
    expect(output).not.toMatch(/the-secret-of-the-shop|eyJ/);
  });

  it('asks the sidecar how it is', async () => {
    expect(await check('--status')).toMatch(/^ok {4}credential default: state +a token is held for /m);
  });
});
