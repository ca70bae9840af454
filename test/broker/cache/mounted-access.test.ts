import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { watchAccess } from '../../../src/broker/cache/mounted-access.ts';
import { deriveKey } from '../../../src/broker/cache/sealed-token.ts';
import { systemClock as clock } from '../../../src/platform/time/clock.ts';
import { createCertificateAuthority } from '../../support/certificate-authority.ts';
import { mountSecret } from '../../support/kubelet-secret.ts';
import { captureLog } from '../../support/log-capture.ts';

const [one, other] = [randomBytes(32), randomBytes(32)];
const ca = createCertificateAuthority('of the cache').cert;

async function mounted(files: Readonly<Record<string, string>>) {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-access-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  for (const part of ['key', 'auth', 'ca']) await mkdir(join(directory, part));
  const write = async (name: string, text: string): Promise<void> => writeFile(join(directory, name), text);
  for (const [name, text] of Object.entries(files)) await write(name, text);
  const { log, lines } = captureLog();
  return {
    directory,
    write,
    remove: (name: string) => rm(join(directory, name)),
    lines,
    async follow() {
      const followed = await watchAccess(
        {
          keyDirectory: join(directory, 'key'),
          authDirectory: join(directory, 'auth'),
          caFile: join(directory, 'ca', 'ca.crt'),
        },
        { clock, pollMs: 20, log },
      );
      onTestFinished(() => followed.close());
      return followed;
    },
  };
}

const ALL = {
  'key/current': `${one.toString('base64')}\n`,
  'auth/password': 'pass\n',
  'ca/ca.crt': ca,
};
const turn = () => new Promise((resolve) => setImmediate(resolve));

it('has the mounted files, and leaves out optional ones that are missing', async () => {
  const { follow } = await mounted(ALL);
  const followed = await follow();
  expect(followed.keys()).toEqual({ current: deriveKey(one), previous: undefined });
  expect(followed.access()).toMatchObject({ username: undefined, password: 'pass' });
  expect(followed.access().authorities).toContain('BEGIN CERTIFICATE');
});

it('follows a key that is rotated', async () => {
  const { follow, write, remove } = await mounted(ALL);
  const followed = await follow();
  await write('key/previous', one.toString('base64'));
  await write('key/current', other.toString('base64'));
  while (followed.keys().previous === undefined) await turn();
  while (followed.keys().current.naming.equals(deriveKey(one).naming)) await turn();
  expect(followed.keys()).toEqual({ current: deriveKey(other), previous: deriveKey(one) });
  await remove('key/previous');
  while (followed.keys().previous !== undefined) await turn();
});

it('follows login and CAs, and says so', async () => {
  const { follow, write } = await mounted(ALL);
  const followed = await follow();
  let changes = 0;
  followed.onAccess(() => {
    changes += 1;
  });
  await write('auth/username', 'broker');
  while (changes < 1) await turn();
  expect(followed.access().username).toBe('broker');
  await write('auth/password', 'another');
  while (changes < 2) await turn();
  expect(followed.access().password).toBe('another');
});

it('keeps the last good files if the new ones cannot be used, and shows no content', async () => {
  const { follow, write, lines } = await mounted(ALL);
  const followed = await follow();
  await write('key/current', 'c2hvcnQtc2VjcmV0');
  while (!lines.join().includes('current is not 32 bytes in base64')) await turn();
  await write('ca/ca.crt', 'no certificate');
  while (!lines.join().includes('ca.crt cannot be used: it holds no PEM certificate')) await turn();
  expect(followed.keys().current).toEqual(deriveKey(one));
  expect(followed.access().authorities).toContain('BEGIN CERTIFICATE');
  expect(lines.join()).not.toContain('c2hvcnQtc2VjcmV0');
});

/** Secrets as the kubelet mounts them, each of which changes as one; the CAs are beside the login. */
async function mountedAsSecrets() {
  const key = await mountSecret({ current: one.toString('base64'), previous: other.toString('base64') });
  const login = { username: 'broker-0', password: 'password-0', 'ca.crt': ca };
  const auth = await mountSecret(login);
  const { log, lines } = captureLog();
  const followed = await watchAccess(
    {
      keyDirectory: key.directory,
      authDirectory: auth.directory,
      caFile: join(auth.directory, 'ca.crt'),
    },
    { clock, pollMs: 20, log },
  );
  onTestFinished(() => followed.close());
  return { key, auth, login, followed, lines };
}

it('never has files of two versions of a Secret, at any turn of the event loop', async () => {
  const { key, auth, login, followed } = await mountedAsSecrets();
  const otherCa = createCertificateAuthority('of the cache, too').cert;
  const oneOf = (text = ''): string => (text.trim() === ca.trim() ? 'even' : 'odd');
  const seen = new Set<string>();
  for (let n = 1; n <= 20; n++) {
    const keys = n % 2 === 0 ? [one, other] : [other, one];
    await Promise.all([
      key.update({ current: `${keys[0]?.toString('base64')}`, previous: `${keys[1]?.toString('base64')}` }),
      auth.update({
        username: `broker-${n}`,
        password: `password-${n}`,
        'ca.crt': n % 2 === 0 ? login['ca.crt'] : otherCa,
      }),
    ]);
    const wanted = deriveKey(keys[0] as Buffer).naming;
    while (
      followed.access().password !== `password-${n}` ||
      followed.access().username !== `broker-${n}` ||
      !followed.keys().current.naming.equals(wanted)
    ) {
      const { username, password, authorities } = followed.access();
      const { current, previous } = followed.keys();
      const version = Number(username?.slice('broker-'.length));
      expect(password).toBe(`password-${version}`);
      expect(oneOf(authorities)).toBe(version % 2 === 0 ? 'even' : 'odd');
      expect(current.naming).not.toEqual(previous?.naming);
      seen.add(`${username}`);
      await turn();
    }
  }
  expect(seen.size).toBeGreaterThan(10);
});

it.each([
  ['password', { password: '' }, 'password is empty'],
  ['user', { username: Buffer.from([0xff]) }, 'username is not UTF-8'],
  ['CAs', { 'ca.crt': 'none' }, 'ca.crt cannot be used'],
])(
  'stays with the login and the CAs of before as a whole while the %s cannot be used',
  async (_, bad, why) => {
    const { auth, login, followed, lines } = await mountedAsSecrets();
    const before = followed.access();
    let changes = 0;
    followed.onAccess(() => {
      changes += 1;
    });
    const next = { ...login, username: 'broker-1', password: 'password-1' };
    await auth.update({ ...next, ...bad });
    while (!lines.join().includes(why)) await turn();
    expect(followed.access()).toEqual(before);
    expect(changes).toBe(0);
    await auth.update(next);
    while (changes === 0) await turn();
    expect(followed.access()).toEqual({ ...before, username: 'broker-1', password: 'password-1' });
  },
);

it('keeps both previous keys while the new current key is invalid', async () => {
  const { key, followed, lines } = await mountedAsSecrets();
  const before = followed.keys();
  await key.update({ current: 'none', previous: one.toString('base64') });
  while (!lines.join().includes('current is not 32 bytes')) await turn();
  expect(followed.keys()).toEqual(before);
});

it('treats an empty user as absent', async () => {
  const { follow, lines } = await mounted({ ...ALL, 'auth/username': '' });
  expect((await follow()).access().username).toBeUndefined();
  expect(lines).toEqual([]);
});

it('does not use an invalid previous key, and warns of it', async () => {
  const { follow, lines } = await mounted({ ...ALL, 'key/previous': 'nonsense' });
  expect((await follow()).keys().previous).toBeUndefined();
  expect(lines.join()).toContain('previous is not 32 bytes in base64');
});

it.each([
  ['no key', { ...ALL, 'key/current': '' }, 'current is empty'],
  ['a key of 16 bytes', { ...ALL, 'key/current': randomBytes(16).toString('base64') }, 'is not 32 bytes'],
  ['a key in hexadecimal', { ...ALL, 'key/current': one.toString('hex') }, 'is not 32 bytes'],
  ['a key and more', { ...ALL, 'key/current': `${one.toString('base64')}!` }, 'is not 32 bytes'],
  ['a user that is no text', { ...ALL, 'auth/username': 'x'.repeat(65_537) }, 'username is larger'],
  ['an empty password', { ...ALL, 'auth/password': '' }, 'password is empty'],
  ['no CA', { ...ALL, 'ca/ca.crt': 'none' }, 'no PEM certificate'],
])('does not begin with %s', async (_, files, why) => {
  const { follow } = await mounted(files);
  await expect(follow()).rejects.toThrow(why);
});
