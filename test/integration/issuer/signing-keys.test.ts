import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { askForToken } from './running-issuer.ts';
import { runIssuerCommand as run } from './running-issuer-command.ts';

const newKey = (): string =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' });
const publicOf = (pem: string): string =>
  createPublicKey(pem).export({ type: 'spki', format: 'pem' }) as string;

let root: string;
let args: readonly string[];
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'token-sidecar-issuer-keys-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  await mkdir(join(root, 'published'));
  await place('clients.yaml', 'clients: [{ clientId: shop, clientSecret: s3cret }]');
  args = [
    ...['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'],
    ...['--clients-file', join(root, 'clients.yaml'), '--signing-key-file', join(root, 'signing.pem')],
    ...['--published-keys-dir', join(root, 'published')],
  ];
});

/** In one step, so that no reading falls between. */
async function place(name: string, content: string): Promise<void> {
  await writeFile(join(root, '.next'), content);
  await rename(join(root, '.next'), join(root, name));
}

async function kidsAt(admin: unknown): Promise<readonly string[]> {
  const { keys } = (await (await fetch(`http://${admin}/jwks`)).json()) as {
    keys: { kid: string; d?: string }[];
  };
  expect(keys.every(({ d }) => d === undefined)).toBe(true);
  return keys.map(({ kid }) => kid);
}

const tokenFrom = async (tokenUrl: unknown): Promise<string> =>
  String((await askForToken(String(tokenUrl))).json['access_token']);

describe('keys in the published directory', () => {
  it('are known before they sign, and verify tokens after they have and the issuer was restarted', async () => {
    const [first, second] = [newKey(), newKey()];
    await place('signing.pem', first);
    const command = run(args);
    const { tokenUrl, admin, kid } = await command.logged('ready');
    expect(await kidsAt(admin)).toEqual([kid]);

    await place('published/next.pem', second);
    await command.logged('published keys loaded', ({ kids }) => (kids as string[]).length === 1);
    const [, next] = await kidsAt(admin);
    expect(next).toBeDefined();
    const old = await tokenFrom(tokenUrl);

    await place('published/previous.pem', publicOf(first));
    await command.logged('published keys loaded', ({ kids }) => (kids as string[]).length === 2);
    await place('signing.pem', second);
    expect(await command.logged('signing key loaded')).toMatchObject({ kid: next });
    command.stop();
    await command.status;
    expect(command.output()).not.toContain('end with this process');

    const restarted = run(args);
    const ready = await restarted.logged('ready');
    expect(ready['kid']).toBe(next);
    expect(await kidsAt(ready['admin'])).toEqual([next, kid]);
    const keys = createRemoteJWKSet(new URL(`http://${ready['admin']}/jwks`));
    for (const token of [old, await tokenFrom(ready['tokenUrl'])]) await jwtVerify(token, keys);
  });

  it('that are not there are named when the issuer ends while their tokens live', async () => {
    await place('signing.pem', newKey());
    const command = run(args);
    const { tokenUrl, kid } = await command.logged('ready');
    await tokenFrom(tokenUrl);
    await place('signing.pem', newKey());
    await command.logged('signing key loaded');
    command.stop();
    await command.status;
    const lost = await command.logged(
      'keys with living tokens end with this process: publish them by --published-keys-dir',
    );
    expect(lost['kids']).toEqual([kid]);
  });

  it('stay as they are when one can no longer be used, which is logged without it', async () => {
    await place('signing.pem', newKey());
    await place('published/next.pem', newKey());
    const command = run(args);
    const { admin } = await command.logged('ready');
    const before = await kidsAt(admin);
    expect(before).toHaveLength(2);
    await place('published/next.pem', 'hunter2');
    await command.logged('published keys not reloaded, the last good ones stay');
    expect(await kidsAt(admin)).toEqual(before);
    expect(command.output()).not.toContain('hunter2');
  });

  it.each([
    ['no key', () => place('published/a.pem', 'hunter2'), 'a.pem'],
    [
      'a key that nothing is signed with',
      () =>
        place(
          'published/a.pem',
          generateKeyPairSync('x25519').privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
        ),
      'a.pem',
    ],
    [
      'too many',
      async () => {
        for (let index = 0; index < 17; index++) await place(`published/${index}.pem`, newKey());
      },
      '--published-keys-dir',
    ],
    ['one that cannot be read', () => mkdir(join(root, 'published', 'a.pem')), '--published-keys-dir'],
    ['no directory', () => rm(join(root, 'published'), { recursive: true }), '--published-keys-dir'],
  ])('are a problem from the start: %s', async (_name, prepare, key) => {
    await place('signing.pem', newKey());
    await prepare();
    await expect(run(args).status).rejects.toMatchObject({
      exitCode: 78,
      problems: [{ key: expect.stringContaining(key) }],
      message: expect.not.stringContaining('hunter2'),
    });
  });

  it('may be in other files too, which are not looked at', async () => {
    await place('signing.pem', newKey());
    await place('published/ca.crt', 'something else');
    const { admin, kid } = await run(args).logged('ready');
    expect(await kidsAt(admin)).toEqual([kid]);
  });
});
