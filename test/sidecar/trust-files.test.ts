import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/platform/time/clock.ts';
import { blocksOf } from '../../src/platform/x509/pem.ts';
import { createAuthority } from '../../src/proxy/tls/interception-ca.ts';
import { openInterception, writeTrustFiles } from '../../src/sidecar/interception.ts';
import { captureLog } from '../support/log-capture.ts';

async function directory(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'token-sidecar-trust-'));
  onTestFinished(() => rm(made, { recursive: true }));
  return join(made, 'trust');
}

const TRUST_FILES_SOURCE = join(import.meta.dirname, '../../src/sidecar/interception.ts');

const newRoot = () => createAuthority({ names: ['api.example.com'], nowMs: Date.now() }).root;
const PUBLIC = rootCertificates.slice(0, 3);

it('hold the root, and beside it the public ones, for everybody to read', async () => {
  const trust = await directory();
  const root = newRoot();
  expect(await writeTrustFiles(trust, root, PUBLIC)).toBe(false);
  expect(await readFile(join(trust, 'ca.crt'), 'utf8')).toBe(root);
  const bundle = blocksOf(await readFile(join(trust, 'bundle.pem'), 'utf8'));
  const fingerprint = (pem: string) => new X509Certificate(pem).fingerprint256;
  expect(bundle.map(fingerprint)).toEqual([...PUBLIC, root].map(fingerprint));
  const store = await readFile(join(trust, 'truststore.p12'));
  for (const pem of [...PUBLIC, root]) expect(store.includes(new X509Certificate(pem).raw)).toBe(true);
  // What Java has a trusted certificate say of itself: 2.16.840.1.113894.746875.1.1.
  expect(store.includes(Buffer.from('060c6086480186f966adca7b0101', 'hex'))).toBe(true);
  for (const file of await readdir(trust)) expect((await stat(join(trust, file))).mode & 0o777).toBe(0o644);
});

it('are for everybody to read whatever is left of their modes by the umask', async () => {
  const parent = await directory();
  const trust = join(parent, 'deeper');
  const script = `import { writeTrustFiles } from ${JSON.stringify(TRUST_FILES_SOURCE)};
    process.umask(0o077);
    await writeTrustFiles(${JSON.stringify(trust)}, ${JSON.stringify(newRoot())}, []);`;
  await promisify(execFile)(process.execPath, ['--input-type=module-typescript', '--eval', script]);
  for (const made of [parent, trust]) expect((await stat(made)).mode & 0o777).toBe(0o755);
  for (const file of await readdir(trust)) expect((await stat(join(trust, file))).mode & 0o777).toBe(0o644);
});

it('take the place of those of an earlier start, which is told', async () => {
  const trust = await directory();
  const first = newRoot();
  await writeTrustFiles(trust, first, PUBLIC);
  expect(await writeTrustFiles(trust, first, PUBLIC)).toBe(false);
  const second = newRoot();
  expect(await writeTrustFiles(trust, second, PUBLIC)).toBe(true);
  expect(await readFile(join(trust, 'bundle.pem'), 'utf8')).not.toContain(first);
  expect((await readdir(trust)).sort()).toEqual(['bundle.pem', 'ca.crt', 'truststore.p12']);
});

it('leave nothing behind where one cannot be written', async () => {
  const trust = await directory();
  await writeTrustFiles(trust, newRoot(), PUBLIC);
  // A directory cannot be replaced by a file, whoever runs this.
  await rm(join(trust, 'ca.crt'));
  await writeTrustFiles(join(trust, 'ca.crt'), newRoot(), PUBLIC);
  await expect(writeTrustFiles(trust, newRoot(), PUBLIC)).rejects.toThrow(/EISDIR/);
  expect((await readdir(trust)).sort()).toEqual(['bundle.pem', 'ca.crt', 'truststore.p12']);
});

it('are public certificates and nothing else, as the sidecar leaves them', async () => {
  const trust = await directory();
  const { log, lines } = captureLog();
  const options = { directory: trust, names: ['api.example.com'], clock: systemClock, log };
  await openInterception(options);
  const texts = await Promise.all(
    ['ca.crt', 'bundle.pem'].map((file) => readFile(join(trust, file), 'utf8')),
  );
  for (const text of texts)
    expect(text.replaceAll(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/g, '')).toBe('');
  // Of the store, which is not encrypted, certificates leave a name and an attribute for each.
  const certificates = blocksOf(texts[1] as string).map((pem) => new X509Certificate(pem).raw.length);
  const store = (await readFile(join(trust, 'truststore.p12'))).length;
  expect(store - certificates.reduce((sum, length) => sum + length)).toBeLessThan(130 * certificates.length);
  expect(lines.join('')).not.toContain('an earlier start');
  await openInterception(options);
  expect(lines.join('')).toContain('an earlier start');
});
