/** The authority of interception (RFC 5280) is made in memory at start. */

import { type KeyObject, randomBytes } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import {
  BasicConstraints,
  ExtendedKeyUsage,
  GeneralName,
  GeneralSubtree,
  GeneralSubtrees,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_nameConstraints,
  id_ce_subjectAltName,
  id_kp_serverAuth,
  KeyUsage,
  KeyUsageFlags,
  type Name,
  NameConstraints,
  SubjectAlternativeName,
} from '@peculiar/asn1-x509';
import { LruMap } from '../../platform/limits/lru-map.ts';
import type { Clock } from '../../platform/time/clock.ts';
import {
  commonName,
  extension,
  type KeyPair,
  newKeyPairNow,
  signCertificate,
  validity,
} from '../../platform/x509/certificate.ts';
import { INTERCEPTION_ROOT } from '../../platform/x509/pem.ts';

interface LeafCertificate {
  readonly chain: string;
  /** PEM, PKCS #8. */
  readonly key: string;
  /** Unix time in ms. */
  readonly expiresAtMs: number;
}

interface Authority {
  /** PEM, for apps to trust. Its key is gone. */
  readonly root: string;
  /**
   * Verifiers refuse an unlisted name by the issuer's constraints.
   * @param nowMs Unix time in ms.
   */
  issue(name: string, nowMs: number): LeafCertificate;
}

interface AuthorityOptions {
  /** Lower-case; `*.suffix` for all names below. */
  readonly names: readonly string[];
  /** Unix time in ms. */
  readonly nowMs: number;
  /** P-256 unless given. */
  readonly newKeys?: () => KeyPair;
}

const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;

/** Apps' clocks may be behind, or this one ahead: a node's hardware clock can be off by days until it is synchronised. */
const BACKDATED_MS = 7 * 24 * HOUR_MS;

/** Longer than any pod lives: apps read what they trust only at start. */
const AUTHORITY_MS = 10 * YEAR_MS;

const LEAF_MS = 24 * HOUR_MS;

/** RFC 5280 §4.2.1.10. */
const ADDRESSES = ['0.0.0.0/0', '::/0'];

/** The root signs only one intermediate. */
export function createAuthority({ names, nowMs, newKeys = newKeyPairNow }: AuthorityOptions): Authority {
  const { root, certificate, issuer, keys } = signIntermediate(names, nowMs, newKeys);
  // One key for all: whoever could read one could read each.
  const leaf = newKeys();
  const key = leaf.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  return {
    root,
    issue(name, issuedAtMs) {
      const expiresAtMs = issuedAtMs + LEAF_MS;
      const signed = signLeaf({ name, issuer, keys, leafKey: leaf.publicKey, issuedAtMs, expiresAtMs });
      return { chain: signed + certificate, key, expiresAtMs };
    },
  };
}

/** A function of its own, so that nothing keeps the root's key. */
function signIntermediate(names: readonly string[], nowMs: number, newKeys: () => KeyPair) {
  const rootKeys = newKeys();
  const keys = newKeys();
  // Unique to this start: verifiers look up issuers by name.
  const mark = randomBytes(8).toString('hex');
  const rootName = commonName(`${INTERCEPTION_ROOT} ${mark}`);
  const issuer = commonName(`token-sidecar interception ${mark}`);
  const lifetime = validity(nowMs - BACKDATED_MS, nowMs + AUTHORITY_MS);
  const mayCertify = extension.of(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.keyCertSign), true);
  const root = signCertificate(
    {
      issuer: rootName,
      subject: rootName,
      publicKey: rootKeys.publicKey,
      validity: lifetime,
      extensions: [
        extension.of(id_ce_basicConstraints, new BasicConstraints({ cA: true, pathLenConstraint: 1 }), true),
        mayCertify,
        extension.subjectKeyIdentifier(rootKeys.publicKey),
      ],
    },
    rootKeys.privateKey,
  );
  const certificate = signCertificate(
    {
      issuer: rootName,
      subject: issuer,
      publicKey: keys.publicKey,
      validity: lifetime,
      extensions: [
        extension.of(id_ce_basicConstraints, new BasicConstraints({ cA: true, pathLenConstraint: 0 }), true),
        mayCertify,
        extension.of(id_ce_extKeyUsage, new ExtendedKeyUsage([id_kp_serverAuth])),
        // In the intermediate, since verifiers may ignore those of a trust anchor (RFC 5280 §6.1.1).
        extension.of(id_ce_nameConstraints, constraintsTo(names), true),
        extension.subjectKeyIdentifier(keys.publicKey),
        extension.authorityKeyIdentifier(rootKeys.publicKey),
      ],
    },
    rootKeys.privateKey,
  );
  return { root, certificate, issuer, keys };
}

/** A permitted name permits all names below it, so unlisted ones are excluded. */
function constraintsTo(names: readonly string[]): NameConstraints {
  const listed = new Set(names.map((name) => name.replace(/^\*\./, '')));
  const exact = names.filter(
    (name) => !name.startsWith('*.') && ![...names].some((other) => other.endsWith(`.${name}`)),
  );
  return new NameConstraints({
    permittedSubtrees: subtrees([...listed].map((name) => new GeneralName({ dNSName: name }))),
    excludedSubtrees: subtrees([
      ...ADDRESSES.map((range) => new GeneralName({ iPAddress: range })),
      ...exact.map((name) => new GeneralName({ dNSName: `.${name}` })),
    ]),
  });
}

function subtrees(names: readonly GeneralName[]): GeneralSubtrees {
  return new GeneralSubtrees(names.map((base) => new GeneralSubtree({ base })));
}

interface LeafContent {
  readonly name: string;
  readonly issuer: Name;
  readonly keys: KeyPair;
  readonly leafKey: KeyObject;
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
}

function signLeaf({ name, issuer, keys, leafKey, issuedAtMs, expiresAtMs }: LeafContent): string {
  return signCertificate(
    {
      issuer,
      subject: commonName(name),
      publicKey: leafKey,
      validity: validity(issuedAtMs - BACKDATED_MS, expiresAtMs),
      extensions: [
        extension.of(id_ce_basicConstraints, new BasicConstraints(), true),
        extension.of(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.digitalSignature), true),
        extension.of(id_ce_extKeyUsage, new ExtendedKeyUsage([id_kp_serverAuth])),
        extension.of(id_ce_subjectAltName, new SubjectAlternativeName([new GeneralName({ dNSName: name })])),
        extension.subjectKeyIdentifier(leafKey),
        extension.authorityKeyIdentifier(keys.publicKey),
      ],
    },
    keys.privateKey,
  );
}

const MAX_LEAVES = 128;

const RENEWED_AT = 1 / 3;

interface Kept {
  readonly context: SecureContext;
  /** Unix time in ms, as is `renewAtMs`. */
  readonly madeAtMs: number;
  readonly renewAtMs: number;
}

export class LeafCertificates {
  readonly #authority: Authority;
  readonly #clock: Clock;
  readonly #kept = new LruMap<string, Kept>({ max: MAX_LEAVES });

  constructor(authority: Authority, clock: Clock) {
    this.#authority = authority;
    this.#clock = clock;
  }

  get size(): number {
    return this.#kept.size;
  }

  /** @param name a listed one, lower-case. */
  contextFor(name: string): SecureContext {
    const { wallMs } = this.#clock.now();
    const known = this.#kept.get(name);
    const kept = known !== undefined && isCurrent(known, wallMs) ? known : this.#make(name, wallMs);
    if (kept !== known) this.#kept.set(name, kept);
    return kept.context;
  }

  #make(name: string, nowMs: number): Kept {
    const { chain, key, expiresAtMs } = this.#authority.issue(name, nowMs);
    return {
      // Apps show no certificates: an empty list saves loading the public roots.
      context: createSecureContext({ cert: chain, key, ca: [], minVersion: 'TLSv1.2' }),
      madeAtMs: nowMs,
      renewAtMs: expiresAtMs - (expiresAtMs - nowMs) * RENEWED_AT,
    };
  }
}

/** If it was made in the future, the clock ran ahead: it may not be valid yet. */
function isCurrent({ madeAtMs, renewAtMs }: Kept, nowMs: number): boolean {
  return madeAtMs <= nowMs && nowMs < renewAtMs;
}
