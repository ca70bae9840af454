import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { about } from '../../src/check/check-context.ts';
import { checkMountedFiles, checkTokenFile, nearName } from '../../src/check/mounted-files.ts';
import { credentialConfig } from '../support/credential-config.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { lines } from './examined.ts';

const TOKEN_URL = { tokenUrl: 'https://sso.example.com/token' };

async function examined(
  values: Readonly<Record<string, string>>,
): Promise<{ text: string[]; directory: string }> {
  const { directory } = await mountSecret(values);
  const config = credentialConfig({ ...TOKEN_URL, directory });
  return { text: lines(await checkMountedFiles(config, about('credential default'))), directory };
}

it('names the directory of files that are all well', async () => {
  const { text, directory } = await examined({ client_id: 'shop', client_secret: 's3cret' });
  expect(text).toEqual([`ok credential default: mounted Secret: ${directory}`]);
});

it('tells of every file that is missing, and of what stands there in its place', async () => {
  const { text, directory } = await examined({ 'client-id': 'shop', password: 's3cret' });
  expect(text).toEqual([
    `failure credential default: mounted Secret: ${directory}/client_id does not exist → there is client-id: the key must be client_id`,
    `failure credential default: mounted Secret: ${directory}/client_secret does not exist → there is password: the key must be client_secret`,
  ]);
});

it('tells whether the file of the token can be made, and makes none', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'tokens-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const told = async (path?: string) => {
    const file = path === undefined ? {} : { file: { path, mode: 0o640 } };
    const config = credentialConfig({ ...TOKEN_URL, output: { endpoint: true, ...file } });
    return lines(await checkTokenFile(config, about('credential default')));
  };
  expect(await told(join(directory, 'kafka'))).toEqual([
    `ok credential default: token file: ${directory}/kafka`,
  ]);
  expect(await readdir(directory)).toEqual([]);
  expect(await told(join(directory, 'none', 'kafka'))).toEqual([
    `failure credential default: token file: ${directory}/none/kafka cannot be written: ENOENT of ${directory}/none → mount a volume at ${directory}/none that may be written`,
  ]);
  expect(await told()).toEqual([]);
});

it('lists the keys that are there where none is near', async () => {
  const { text } = await examined({ client_id: 'shop', 'config.yaml': 'a: b' });
  expect(text).toEqual([expect.stringMatching(/client_secret; it has client_id, config\.yaml$/)]);
});

it('takes a directory that is not there for one failure', async () => {
  const config = credentialConfig({ ...TOKEN_URL, directory: '/nonexistent' });
  expect(lines(await checkMountedFiles(config, about('credential default')))).toEqual([
    'failure credential default: mounted Secret: /nonexistent/client_id does not exist, nor does the directory → mount the Secret at /nonexistent, or name the directory where it is',
  ]);
});

it.each([
  ['more than one line', 'line\nS3CRET-two'],
  ['white space', ' S3CRET '],
  ['quotes', '"S3CRET"'],
  ['a placeholder', '<your S3CRET>'],
])('warns of a value with %s, and shows nothing of it', async (what, secret) => {
  const { text } = await examined({ client_id: 'shop', client_secret: secret });
  expect(text).toEqual([expect.stringMatching(new RegExp(`^warning .*client_secret .*${what}`))]);
  expect(text.join()).not.toContain('S3CRET');
});

it('has nothing against the line end that editors leave, nor against odd characters', async () => {
  const { text } = await examined({ client_id: 'shop\n', client_secret: `p+ss%w:rd'"\n` });
  expect(text).toEqual([expect.stringMatching(/^ok/)]);
});

it('warns of a file that everybody may write', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'writable-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  for (const name of ['client_id', 'client_secret']) await writeFile(join(directory, name), 'shop');
  await chmod(join(directory, 'client_secret'), 0o666);
  const config = credentialConfig({ ...TOKEN_URL, directory });
  expect(lines(await checkMountedFiles(config, about('credential default')))).toEqual([
    expect.stringContaining(`${directory}/client_secret may be written by everybody`),
  ]);
});

it('makes a warning of what the pod can do without', async () => {
  const config = credentialConfig({ ...TOKEN_URL, directory: '/nonexistent' });
  const [finding] = await checkMountedFiles(config, about('credential default', true));
  expect(finding).toMatchObject({ verdict: 'warning', failure: 'configuration' });
});

describe('the key that was meant', () => {
  it.each([
    ['client_id', 'client-id'],
    ['client_id', 'CLIENT_ID'],
    ['client_id', 'clientId'],
    ['client_id', 'client_id.txt'],
    ['client_id', 'username'],
    ['client_id', 'cleint_id'],
    ['client_secret', 'client-secret'],
    ['client_secret', 'clientSecret'],
    ['client_secret', 'secret'],
    ['tls.crt', 'client.crt'],
    ['tls.key', 'key.pem'],
  ])('%s is seen in %s', (name, entry) => {
    expect(nearName(name, ['unrelated', entry])).toBe(entry);
  });

  it('is no other key that has a use of its own, and nothing that is far', () => {
    expect(nearName('client_secret', ['client_id', 'ca.crt', 'values'])).toBeUndefined();
    expect(nearName('client_id', ['client_secret'])).toBeUndefined();
  });
});
