/** Certificates made on the spot (X.509 v3, RFC 5280), so that no key lies in the repository and none grows old. */

import { generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto';
import { isIPv4 } from 'node:net';
import { der, integer, octets, oid, sequence, set, utcTime } from './der.ts';

export interface Certificate {
  /** PEM, without the authority's own. */
  readonly cert: string;
  /** PEM, PKCS#8. */
  readonly key: string;
}

export interface CertificateAuthority {
  /** PEM of the root. */
  readonly cert: string;
  /** @param commonName the whole of the subject; @param names DNS names, IPv4 addresses and URIs. */
  issue(commonName: string, ...names: string[]): Certificate;
  /** An authority below this one. */
  intermediate(commonName: string): CertificateAuthority;
  /** PEM of an authority below this one, with its name and key, in a certificate that ends then. */
  reissue(below: CertificateAuthority, end: Date): string;
  /** The same of a certificate that ends sooner. */
  issueUntil(end: Date, commonName: string, ...names: string[]): Certificate;
}

const ECDSA_WITH_SHA256 = sequence(oid('2a8648ce3d040302'));
const SERVER_AND_CLIENT = sequence(oid('2b06010505070301'), oid('2b06010505070302'));

export function createCertificateAuthority(commonName: string): CertificateAuthority {
  return authorityBelow(undefined, commonName);
}

function authorityBelow(above: Issuer | undefined, commonName: string): CertificateAuthority {
  const root = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const issuer = { commonName, key: root.privateKey };
  const certifies = extension('551d13', sequence(der(0x01, Buffer.from([0xff]))), true);
  const rootCertificate = certificate(above ?? issuer, commonName, root.publicKey, [certifies]);

  return {
    cert: pem('CERTIFICATE', rootCertificate),
    issue: (subject, ...names) => issueUntil(FAR_END, subject, ...names),
    intermediate: (name) => authorityBelow(issuer, name),
    reissue(below, end) {
      const { subject, publicKey } = new X509Certificate(below.cert);
      return pem('CERTIFICATE', certificate(issuer, subject.replace('CN=', ''), publicKey, [certifies], end));
    },
    issueUntil,
  };

  function issueUntil(end: Date, subject: string, ...names: string[]): Certificate {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const extensions = [
      extension('551d13', sequence(), true),
      extension('551d25', SERVER_AND_CLIENT),
      ...(names.length === 0 ? [] : [extension('551d11', sequence(...names.map(alternativeName)))]),
    ];
    return {
      cert: pem('CERTIFICATE', certificate(issuer, subject, publicKey, extensions, end)),
      key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    };
  }
}

const FAR_END = new Date('2049-12-31T23:59:59Z');

/** `YYMMDDhhmmssZ` (RFC 5280 §4.1.2.5.1). */
function shown(date: Date): string {
  return `${date.toISOString().replace(/[-:T]/g, '').slice(2, 14)}Z`;
}

interface Issuer {
  readonly commonName: string;
  readonly key: KeyObject;
}

function certificate(
  issuer: Issuer,
  commonName: string,
  publicKey: KeyObject,
  extensions: readonly Buffer[],
  end = FAR_END,
): Buffer {
  const toBeSigned = sequence(
    der(0xa0, integer('02')),
    // A leading byte below 0x80, so that the number is positive.
    integer(`01${randomBytes(15).toString('hex')}`),
    ECDSA_WITH_SHA256,
    name(issuer.commonName),
    sequence(utcTime('200101000000Z'), utcTime(shown(end))),
    name(commonName),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions)),
  );
  const signature = sign('sha256', toBeSigned, issuer.key);
  return sequence(toBeSigned, ECDSA_WITH_SHA256, der(0x03, Buffer.from([0]), signature));
}

function name(commonName: string): Buffer {
  return sequence(set(sequence(oid('550403'), der(0x0c, Buffer.from(commonName)))));
}

function extension(id: string, value: Buffer, critical = false): Buffer {
  return sequence(oid(id), ...(critical ? [der(0x01, Buffer.from([0xff]))] : []), octets(value));
}

function alternativeName(entry: string): Buffer {
  if (entry.includes(':')) return der(0x86, Buffer.from(entry));
  return isIPv4(entry) ? der(0x87, Buffer.from(entry.split('.').map(Number))) : der(0x82, Buffer.from(entry));
}

function pem(label: string, bytes: Buffer): string {
  const lines = bytes.toString('base64').replace(/.{64}(?=.)/g, '$&\n');
  return `-----BEGIN ${label}-----\n${lines}\n-----END ${label}-----\n`;
}
