import { describe, expect, it, onTestFinished } from 'vitest';
import { watchClientAuthorities } from '../../src/platform/tls/certificate-files.ts';
import { blocksOf, parseAuthorities } from '../../src/platform/x509/pem.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';

const authority = createCertificateAuthority('api servers');
const other = createCertificateAuthority('others');
const { cert: leaf } = authority.issue('kube-apiserver');

async function follow(files: Readonly<Record<string, string>>, names = ['kube-apiserver']) {
  const mounted = await mountSecret(files);
  const { log, lines } = captureLog();
  const caFile = `${mounted.directory}/ca.crt`;
  const options = { log, clock: new ManualClock(), pollMs: 3_600_000 };
  const following = watchClientAuthorities({ caFile, names, key: '--client-ca-file' }, options);
  following.then(({ close }) => onTestFinished(close)).catch(() => undefined);
  return { following, mounted, options, lines, caFile };
}

it.each([
  ['is not there', {}, 'ca.crt'],
  ['holds no certificate', { 'ca.crt': 'text' }, 'it holds no PEM certificate'],
  [
    'is garbled',
    { 'ca.crt': '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n' },
    'cannot be read',
  ],
  ['is no CA', { 'ca.crt': authority.cert + leaf }, 'it holds a certificate that is not of a CA'],
])('a bundle that %s is refused from the start, by its flag, and watched no more', async (_, files, why) => {
  const { following, options, caFile } = await follow(files);
  await expect(following).rejects.toMatchObject({
    problems: [{ key: '--client-ca-file', value: caFile, expected: expect.stringContaining(why) }],
  });
  expect(options.clock.pendingTimers).toBe(0);
});

it('each listener hears of a new bundle, also when one before it fails', async () => {
  const { following, mounted, options, lines } = await follow({ 'ca.crt': authority.cert });
  const { authorities, onChange } = await following;
  expect(authorities()).toBe(authority.cert.trimEnd());
  const heard: string[] = [];
  onChange(() => {
    throw new Error('a context that could not be made');
  });
  const end = onChange(() => void heard.push('deaf'));
  end();
  onChange(() => void heard.push(authorities()));
  await mounted.update({ 'ca.crt': other.cert });
  while (heard.length === 0) await options.clock.advance(20);
  expect(heard).toEqual([other.cert.trimEnd()]);
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({ msg: 'client CA loaded' }),
    expect.objectContaining({ level: 'error', err: 'a context that could not be made' }),
  ]);
});

it('a caller is accepted by one of its names', async () => {
  const { following } = await follow({ 'ca.crt': authority.cert });
  const { accepts } = await following;
  const shows = (certificate: object) => ({ getPeerCertificate: () => certificate as never });
  const named = (CN: unknown) => accepts(shows({ subject: { CN } }));
  expect(['kube-apiserver', 'other', ['other', 'kube-apiserver'], undefined].map(named)).toEqual([
    true,
    false,
    true,
    false,
  ]);
  expect(accepts(shows({}))).toBe(false);
  const whoever = await (await follow({ 'ca.crt': authority.cert }, [])).following;
  expect(whoever.accepts(shows({}))).toBe(true);
});

describe('a bundle', () => {
  it('is kept as it was given', () => {
    const pem = `# first\n${authority.cert}# second\n${other.cert}`;
    expect(parseAuthorities(pem)).toEqual({ pem });
  });

  it.each([
    ['', []],
    ['text', []],
    ['a\n-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\nb\n', ['\nA\n|']],
    ['-----BEGIN CERTIFICATE----- \t\r\nA\r\n-----END CERTIFICATE-----', ['\nA\r\n|']],
    [
      '-----BEGIN CERTIFICATE-----\nA\n-----BEGIN CERTIFICATE-----\nB\n-----END CERTIFICATE-----',
      ['\nA\n', '\nB\n|'],
    ],
    [' -----BEGIN CERTIFICATE-----\nA', []],
    ['-----BEGIN CERTIFICATE-----X\nA', []],
    ['-----BEGIN CERTIFICATE-----\nA -----END CERTIFICATE-----', ['\nA -----END CERTIFICATE-----']],
  ])('%j is cut into its certificates, whole or not', (bundle, bodies) => {
    expect(blocksOf(bundle)).toEqual(
      bodies.map((body) => `-----BEGIN CERTIFICATE-----${body.replace('|', '-----END CERTIFICATE-----\n')}`),
    );
  });
});
