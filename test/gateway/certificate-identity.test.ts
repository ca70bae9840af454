/** Whom a certificate names, of those that could be read in two ways, or name too much. */

import { X509Certificate } from 'node:crypto';
import { AsnConvert } from '@peculiar/asn1-schema';
import { Certificate, type Extension, id_ce_subjectAltName } from '@peculiar/asn1-x509';
import { describe, expect, it } from 'vitest';
import { identityOf } from '../../src/gateway/client-certificate.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';

const authority = createCertificateAuthority('callers');

const der = (commonName: string, ...names: string[]): Buffer =>
  new X509Certificate(authority.issue(commonName, ...names).cert).raw;

/** The same with another content, whose signature nobody here looks at. */
function changed(bytes: Buffer, change: (certificate: Certificate) => void): Buffer {
  const certificate = AsnConvert.parse(bytes, Certificate);
  change(certificate);
  return Buffer.from(AsnConvert.serialize(certificate));
}

const dnsNames = (count: number): string[] => Array.from({ length: count }, (_, n) => `web-${n}.example`);

describe('a certificate identifies no caller', () => {
  it('if it has two subjectAltName extensions', () => {
    const twice = changed(der('web', 'spiffe://cluster.local/ns/shop/sa/web'), ({ tbsCertificate }) => {
      const [names] = (tbsCertificate.extensions ?? []).filter(
        ({ extnID }) => extnID === id_ce_subjectAltName,
      );
      tbsCertificate.extensions?.push(names as Extension);
    });
    expect(identityOf(twice)).toEqual({ kind: 'nobody', why: 'has its alternative names twice' });
  });

  it('if it has two common names', () => {
    const twice = changed(der('web'), ({ tbsCertificate: { subject } }) => {
      const [name] = [...AsnConvert.parse(der('admin'), Certificate).tbsCertificate.subject];
      if (name === undefined) throw new Error('it has no subject');
      subject.push(name);
    });
    expect(identityOf(twice)).toEqual({
      kind: 'nobody',
      why: 'has no alternative names, and not one common name',
    });
  });

  it('if it has only a wildcard, or more than 32 names', () => {
    expect(identityOf(der('web', '*.example'))).toMatchObject({ kind: 'nobody' });
    expect(identityOf(der('web', ...dnsNames(33)))).toEqual({
      kind: 'nobody',
      why: 'has more than 32 DNS names',
    });
  });

  it.each([
    'spiffe://cluster.local/ns/../sa/web',
    'spiffe://cluster.local/ns/shop?x',
    'SPIFFE://cluster.local/web',
  ])('with %s', (id) => {
    expect(identityOf(der('web', id))).toEqual({ kind: 'nobody', why: 'has a SPIFFE id that is none' });
  });

  it('if it cannot be parsed', () => {
    expect(identityOf(Buffer.from('not a certificate'))).toEqual({ kind: 'nobody', why: 'cannot be read' });
  });
});

it('a certificate identifies up to 32 DNS names, in lower case, without wildcards', () => {
  expect(identityOf(der('web', ...dnsNames(32)))).toMatchObject({ kind: 'named' });
  expect(identityOf(der('web', '*.example', 'Web.Example', 'api.example'))).toEqual({
    kind: 'named',
    caller: { kind: 'certificate', by: 'dns_names', names: ['api.example', 'web.example'] },
  });
});
