import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { openShop, type Shop } from './shop.ts';

describe.skipIf(inject('imageUnavailable') !== undefined)(
  'SIGTERM to the first process of a container',
  () => {
    let shop: Shop;
    beforeAll(async () => {
      shop = await openShop('shutdown', 'any');
    });
    afterAll(() => shop?.remove());

    it('ends the sidecar with 0, which a Job needs to succeed', async () => {
      expect(await shop.sidecar.stop()).toBe(0);
      expect(await shop.sidecar.log()).toContain('"msg":"stopped"');
    });

    it('ends the issuer with 0', async () => {
      expect(await shop.provider.issuer.stop()).toBe(0);
      expect(await shop.provider.issuer.log()).toContain('"msg":"stopped"');
    });
  },
);
