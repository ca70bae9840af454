/** X.509 certificates (RFC 5280), signed with ECDSA over P-256. */

import {
  createHash,
  generateKeyPair,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto';
import { promisify } from 'node:util';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  AuthorityKeyIdentifier,
  Certificate,
  Extension,
  Extensions,
  id_ce_authorityKeyIdentifier,
  id_ce_subjectKeyIdentifier,
  KeyIdentifier,
  Name,
  RelativeDistinguishedName,
  SubjectKeyIdentifier,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
} from '@peculiar/asn1-x509';

export interface KeyPair {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

interface CertificateContent {
  readonly issuer: Name;
  readonly subject: Name;
  readonly publicKey: KeyObject;
  readonly validity: Validity;
  readonly extensions: readonly Extension[];
}

const ECDSA_WITH_SHA256 = '1.2.840.10045.4.3.2';
const COMMON_NAME = '2.5.4.3';
const CURVE = { namedCurve: 'P-256' };

/** X.520's limit. */
const MAX_COMMON_NAME = 64;

export function newKeyPair(): Promise<KeyPair> {
  return promisify(generateKeyPair)('ec', CURVE);
}

/** Takes a fraction of a millisecond. */
export function newKeyPairNow(): KeyPair {
  return generateKeyPairSync('ec', CURVE);
}

export function signCertificate(content: CertificateContent, issuerKey: KeyObject): string {
  const tbsCertificate = new TBSCertificate({
    version: Version.v3,
    serialNumber: serialNumber(),
    signature: new AlgorithmIdentifier({ algorithm: ECDSA_WITH_SHA256 }),
    issuer: content.issuer,
    validity: content.validity,
    subject: content.subject,
    subjectPublicKeyInfo: publicKeyInfo(content.publicKey),
    extensions: new Extensions([...content.extensions]),
  });
  const signature = sign('sha256', Buffer.from(AsnConvert.serialize(tbsCertificate)), issuerKey);
  const certificate = new Certificate({
    tbsCertificate,
    signatureAlgorithm: new AlgorithmIdentifier({ algorithm: ECDSA_WITH_SHA256 }),
    signatureValue: toArrayBuffer(signature),
  });
  return new X509Certificate(Buffer.from(AsnConvert.serialize(certificate))).toString();
}

/** Unix times. */
export function validity(fromMs: number, toMs: number): Validity {
  return new Validity({ notBefore: new Date(fromMs), notAfter: new Date(toMs) });
}

export function commonName(text: string): Name {
  const value = new AttributeValue({ utf8String: text.slice(0, MAX_COMMON_NAME) });
  return new Name([new RelativeDistinguishedName([new AttributeTypeAndValue({ type: COMMON_NAME, value })])]);
}

export const extension = {
  of(id: string, value: object, critical = false): Extension {
    return new Extension({ extnID: id, critical, extnValue: new OctetString(AsnConvert.serialize(value)) });
  },

  subjectKeyIdentifier(key: KeyObject): Extension {
    return extension.of(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(keyIdentifier(key)));
  },

  /** @param key of the issuer. */
  authorityKeyIdentifier(key: KeyObject): Extension {
    return extension.of(
      id_ce_authorityKeyIdentifier,
      new AuthorityKeyIdentifier({ keyIdentifier: new KeyIdentifier(keyIdentifier(key)) }),
    );
  },
};

/** Positive, with 159 random bits (RFC 5280 §4.1.2.2). */
function serialNumber(): ArrayBuffer {
  const bytes = randomBytes(20);
  bytes[0] = ((bytes[0] as number) & 0x7f) | 0x40;
  return toArrayBuffer(bytes);
}

function publicKeyInfo(key: KeyObject): SubjectPublicKeyInfo {
  return AsnConvert.parse(key.export({ type: 'spki', format: 'der' }), SubjectPublicKeyInfo);
}

/** Any value unique to the key (RFC 7093 §2). */
function keyIdentifier(key: KeyObject): ArrayBuffer {
  return toArrayBuffer(
    createHash('sha256')
      .update(key.export({ type: 'spki', format: 'der' }))
      .digest()
      .subarray(0, 20),
  );
}

function toArrayBuffer(bytes: Uint8Array): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}
