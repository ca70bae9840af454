import { X509Certificate } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import {
  checkCertificateFiles,
  describeValidity,
  namesOf,
  trustedBy,
  validityOf,
} from '../../src/check/certificates.ts';
import { about } from '../../src/check/check-context.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { lines } from './examined.ts';

const authority = createCertificateAuthority('Test Root');
/** Valid from 2020-01-01 to 2049-12-31. */
const certificate = new X509Certificate(authority.issue('shop', 'shop.example.com', 'b.example.com').cert);

it.each([
  ['2030-01-01', 'valid', '7304 days left'],
  ['2049-12-20', 'ending', '11 days left'],
  ['2049-12-30', 'ending', '1 day left'],
  ['2050-01-01', 'ended', 'ended on 2049-12-31'],
  ['2019-01-01', 'not_yet', 'valid from 2020-01-01 on'],
])('on %s it is %s: %s', (date, state, words) => {
  const validity = validityOf(certificate, Date.parse(date));
  expect([validity.state, describeValidity(validity)]).toEqual([state, words]);
});

it('is called by its names, or by its subject', () => {
  expect(namesOf(certificate)).toBe('shop.example.com and 1 more');
  expect(namesOf(new X509Certificate(authority.issue('client').cert))).toBe('client');
});

it('shows no control characters of a name', () => {
  expect(namesOf(new X509Certificate(authority.issue('a\u001b[31mb').cert))).not.toContain('\u001b');
});

it('knows whose list an authority is on', () => {
  const own = new X509Certificate(rootCertificates[0] as string);
  expect(trustedBy(own, undefined)).toBe("of Node's own list");
  expect(trustedBy(own, '/etc/ca.crt')).toBe('of /etc/ca.crt');
  expect(trustedBy(new X509Certificate(authority.cert), undefined)).toBe("of the system's list");
});

it('looks at files, each for itself', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'certificates-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const [caFile, certFile] = [join(directory, 'ca.crt'), join(directory, 'client.crt')];
  await writeFile(caFile, authority.cert + authority.cert);
  await writeFile(certFile, authority.issue('client').cert);
  const examined = async (date: string) =>
    lines(
      await checkCertificateFiles(
        { caFile, certFile },
        undefined,
        'certificate_files',
        about('a'),
        Date.parse(date),
      ),
    );
  expect(await examined('2030-01-01')).toEqual([
    `ok a: certificate files: ${caFile}: Test Root, 7304 days left (the longest of 2)`,
    `ok a: certificate files: ${certFile}: client, 7304 days left`,
  ]);
  expect((await examined('2049-12-20'))[1]).toMatch(/^warning .*11 days left → renew client\.crt/);
  expect((await examined('2051-01-01'))[1]).toMatch(/^failure .*ended on 2049-12-31 → renew client\.crt/);
});
