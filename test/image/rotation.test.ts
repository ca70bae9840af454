import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { askAdmin, callThroughApp, openShop, type Shop } from './shop.ts';

describe.skipIf(inject('imageUnavailable') !== undefined)('rotation of a mounted Secret', () => {
  let shop: Shop;
  beforeAll(async () => {
    shop = await openShop('rotation', 'the-first-secret');
  });
  afterAll(() => shop?.remove());

  it('is followed while it runs, and no request of the app notices', async () => {
    const tokenId = async () => {
      const { status, body } = await callThroughApp(shop.pod, '/');
      expect(status).toBe(200);
      return (JSON.parse(body) as { caller: { tokenId: string } }).caller.tokenId;
    };
    const before = await tokenId();
    await shop.provider.changeSecret('the-second-secret');
    await shop.secret.update({ client_id: 'shop', client_secret: 'the-second-secret' });
    await expect.poll(tokenId, { timeout: 60_000, interval: 50 }).not.toBe(before);
    const status = JSON.parse((await askAdmin(shop.pod, '/api/status')).body);
    expect(status.credentials[0].history).toMatchObject([
      { reason: 'startup', result: 'success' },
      { reason: 'rotation', result: 'success' },
    ]);
  });
});
