import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { podman } from './container-tools.ts';
import { ask, askAdmin, callThroughApp, openShop, type Shop } from './shop.ts';

describe.skipIf(inject('imageUnavailable') !== undefined)('a pod of app, sidecar and issuer', () => {
  let shop: Shop;
  beforeAll(async () => {
    shop = await openShop('main-job', 'S3CRET-of-the-shop');
  });
  afterAll(() => shop?.remove());

  it('gives the app’s requests a token that the API accepts', async () => {
    const { status, body } = await callThroughApp(shop.pod, '/orders?page=2');
    expect(status).toBe(200);
    expect(JSON.parse(body)).toMatchObject({
      path: '/orders?page=2',
      caller: { client: 'shop', scope: 'read', audience: 'api' },
    });
  });

  it.each(['/startupz', '/readyz', '/livez', '/metrics'])('answers %s from outside the pod', async (path) => {
    expect((await askAdmin(shop.pod, path)).status).toBe(200);
  });

  it('serves the app’s side on loopback alone', async () => {
    await expect(ask(shop.pod, 15_080, '/')).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
  });

  it('has no capabilities, no way to gain any, and the user and group of the image', async () => {
    const status = await readFile(`/proc/${shop.sidecar.processId}/status`, 'utf8');
    const field = (name: string) => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1]?.split('\t');
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) {
      expect([set, field(set)]).toEqual([set, ['0000000000000000']]);
    }
    expect(field('NoNewPrivs')).toEqual(['1']);
    expect(field('Uid')).toEqual(Array(4).fill('65532'));
    expect(field('Gid')).toEqual(Array(4).fill('65532'));
  });

  it.each(['/app/dist/x', '/tmp/x', '/var/run/secrets/token-sidecar/client_id'])(
    'cannot write %s',
    async (path) => {
      const program = `require('node:fs').writeFileSync(${JSON.stringify(path)}, 'x')`;
      await expect(podman('exec', shop.sidecar.name, 'node', '-e', program)).rejects.toThrow(/EROFS|EACCES/);
    },
  );

  it('has no shell to be given', async () => {
    await expect(podman('exec', shop.sidecar.name, 'sh', '-c', 'true')).rejects.toThrow(/executable file/);
  });

  it('logs neither token nor secret', async () => {
    const log = await shop.sidecar.log();
    expect(log).toContain('"msg":"ready"');
    expect(log).not.toMatch(/S3CRET|eyJ|Bearer/);
  });
});
