/** Makes a CA and the one certificate it will ever sign (RFC 5280). */

import { createHash, generateKeyPair, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto';
import { promisify } from 'node:util';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  Extension,
  Extensions,
  GeneralName,
  id_ce_authorityKeyIdentifier,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  id_kp_serverAuth,
  KeyIdentifier,
  KeyUsage,
  KeyUsageFlags,
  Name,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectKeyIdentifier,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
} from '@peculiar/asn1-x509';

export interface IssuedCertificate {
  /** PEM of the CA, for the API server to trust. */
  readonly ca: string;
  /** PEM. */
  readonly cert: string;
  /** PEM, PKCS #8. */
  readonly key: string;
}

export interface IssueOptions {
  /** DNS names of the Service; the first is also the subject's. */
  readonly hosts: readonly string[];
  /** Unix time in ms. */
  readonly nowMs: number;
  readonly lifetimeMs: number;
}

/** Clocks of API servers that are behind ours must accept it too. */
const BACKDATED_MS = 3_600_000;

const ECDSA_WITH_SHA256 = '1.2.840.10045.4.3.2';
const COMMON_NAME = '2.5.4.3';
/** What X.520 allows of a common name. */
const MAX_COMMON_NAME = 64;

/**
 * P-256 keys. The CA's private key is forgotten before this returns: nobody can sign a second certificate that the
 * API server would trust, and each rotation brings a CA of its own.
 */
export async function issueCertificate({
  hosts,
  nowMs,
  lifetimeMs,
}: IssueOptions): Promise<IssuedCertificate> {
  const [authority, leaf] = await Promise.all([newKeyPair(), newKeyPair()]);
  // Told apart by name as well as by key, because verifiers look issuers up by name.
  const authorityName = commonName(`token-sidecar-injector-ca-${randomBytes(8).toString('hex')}`);
  const validity = new Validity({
    notBefore: new Date(nowMs - BACKDATED_MS),
    notAfter: new Date(nowMs + lifetimeMs),
  });
  const authorityId = keyIdentifier(authority.publicKey);
  const signed = (subject: Name, publicKey: KeyObject, extensions: readonly Extension[]): string =>
    toPem(
      signCertificate(
        new TBSCertificate({
          version: Version.v3,
          serialNumber: serialNumber(),
          signature: new AlgorithmIdentifier({ algorithm: ECDSA_WITH_SHA256 }),
          issuer: authorityName,
          validity,
          subject,
          subjectPublicKeyInfo: publicKeyInfo(publicKey),
          extensions: new Extensions([...extensions]),
        }),
        authority.privateKey,
      ),
    );

  return {
    ca: signed(authorityName, authority.publicKey, [
      extension(id_ce_basicConstraints, new BasicConstraints({ cA: true, pathLenConstraint: 0 }), true),
      extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.keyCertSign), true),
      extension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(authorityId)),
    ]),
    cert: signed(commonName((hosts[0] as string).slice(0, MAX_COMMON_NAME)), leaf.publicKey, [
      extension(id_ce_basicConstraints, new BasicConstraints(), true),
      extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.digitalSignature), true),
      extension(id_ce_extKeyUsage, new ExtendedKeyUsage([id_kp_serverAuth])),
      extension(
        id_ce_subjectAltName,
        new SubjectAlternativeName(hosts.map((host) => new GeneralName({ dNSName: host }))),
      ),
      extension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(keyIdentifier(leaf.publicKey))),
      extension(
        id_ce_authorityKeyIdentifier,
        new AuthorityKeyIdentifier({ keyIdentifier: new KeyIdentifier(authorityId) }),
      ),
    ]),
    key: leaf.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

function newKeyPair(): Promise<{ readonly publicKey: KeyObject; readonly privateKey: KeyObject }> {
  return promisify(generateKeyPair)('ec', { namedCurve: 'P-256' });
}

function signCertificate(tbsCertificate: TBSCertificate, issuerKey: KeyObject): Buffer {
  const signature = sign('sha256', Buffer.from(AsnConvert.serialize(tbsCertificate)), issuerKey);
  return Buffer.from(
    AsnConvert.serialize(
      new Certificate({
        tbsCertificate,
        signatureAlgorithm: new AlgorithmIdentifier({ algorithm: ECDSA_WITH_SHA256 }),
        signatureValue: toArrayBuffer(signature),
      }),
    ),
  );
}

/** Positive, and 159 bits of chance (RFC 5280 §4.1.2.2). */
function serialNumber(): ArrayBuffer {
  const bytes = randomBytes(20);
  bytes[0] = ((bytes[0] as number) & 0x7f) | 0x40;
  return toArrayBuffer(bytes);
}

function publicKeyInfo(key: KeyObject): SubjectPublicKeyInfo {
  return AsnConvert.parse(key.export({ type: 'spki', format: 'der' }), SubjectPublicKeyInfo);
}

/** Any value that only this key has will do (RFC 7093 §2). */
function keyIdentifier(key: KeyObject): ArrayBuffer {
  return toArrayBuffer(
    createHash('sha256')
      .update(key.export({ type: 'spki', format: 'der' }))
      .digest()
      .subarray(0, 20),
  );
}

function commonName(text: string): Name {
  const value = new AttributeValue({ utf8String: text });
  return new Name([new RelativeDistinguishedName([new AttributeTypeAndValue({ type: COMMON_NAME, value })])]);
}

function extension(id: string, value: object, critical = false): Extension {
  return new Extension({ extnID: id, critical, extnValue: new OctetString(AsnConvert.serialize(value)) });
}

function toArrayBuffer(bytes: Uint8Array): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}

function toPem(der: Buffer): string {
  return new X509Certificate(der).toString();
}
