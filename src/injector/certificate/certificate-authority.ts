/** A CA and its only certificate (RFC 5280). */

import { type KeyObject, randomBytes } from 'node:crypto';
import {
  BasicConstraints,
  ExtendedKeyUsage,
  type Extension,
  GeneralName,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  id_kp_serverAuth,
  KeyUsage,
  KeyUsageFlags,
  type Name,
  SubjectAlternativeName,
} from '@peculiar/asn1-x509';
import {
  commonName,
  extension,
  newKeyPair,
  signCertificate,
  validity,
} from '../../platform/x509/certificate.ts';

export interface IssuedCertificate {
  /** PEM, for the API server to trust. */
  readonly ca: string;
  /** PEM. */
  readonly cert: string;
  /** PEM, PKCS #8. */
  readonly key: string;
}

interface IssueOptions {
  /** DNS names; the first is also the subject. */
  readonly hosts: readonly string[];
  /** Unix time in ms. */
  readonly nowMs: number;
  readonly lifetimeMs: number;
}

/** For API servers whose clocks are behind. */
const BACKDATED_MS = 3_600_000;

/** The CA's key is forgotten, so nobody can sign another certificate that the API server would trust. */
export async function issueCertificate({
  hosts,
  nowMs,
  lifetimeMs,
}: IssueOptions): Promise<IssuedCertificate> {
  const [authority, leaf] = await Promise.all([newKeyPair(), newKeyPair()]);
  // Verifiers look up issuers by name.
  const authorityName = commonName(`token-sidecar-injector-ca-${randomBytes(8).toString('hex')}`);
  const lifetime = validity(nowMs - BACKDATED_MS, nowMs + lifetimeMs);
  const signed = (subject: Name, publicKey: KeyObject, extensions: readonly Extension[]): string =>
    signCertificate(
      { issuer: authorityName, subject, publicKey, validity: lifetime, extensions },
      authority.privateKey,
    );

  return {
    ca: signed(authorityName, authority.publicKey, [
      extension.of(id_ce_basicConstraints, new BasicConstraints({ cA: true, pathLenConstraint: 0 }), true),
      extension.of(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.keyCertSign), true),
      extension.subjectKeyIdentifier(authority.publicKey),
    ]),
    cert: signed(commonName(hosts[0] as string), leaf.publicKey, [
      extension.of(id_ce_basicConstraints, new BasicConstraints(), true),
      extension.of(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.digitalSignature), true),
      extension.of(id_ce_extKeyUsage, new ExtendedKeyUsage([id_kp_serverAuth])),
      extension.of(
        id_ce_subjectAltName,
        new SubjectAlternativeName(hosts.map((host) => new GeneralName({ dNSName: host }))),
      ),
      extension.subjectKeyIdentifier(leaf.publicKey),
      extension.authorityKeyIdentifier(authority.publicKey),
    ]),
    key: leaf.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}
