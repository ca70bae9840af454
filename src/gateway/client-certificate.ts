/** What a TLS peer has proved. */

import { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import { AsnConvert } from '@peculiar/asn1-schema';
import { Certificate, id_ce_subjectAltName, SubjectAlternativeName } from '@peculiar/asn1-x509';
import type { CertificateCaller, SpiffeCaller } from '../callers/caller.ts';
import { type Instant, later } from '../platform/time/clock.ts';

export type Peer =
  | { readonly kind: 'unnamed' }
  /** @property why completes "the client certificate …". */
  | { readonly kind: 'refused'; readonly why: string }
  | {
      readonly kind: 'named';
      readonly caller: SpiffeCaller | CertificateCaller;
      /** When the first certificate of the chain expires, as far as known. */
      readonly endsAt: Instant;
      /** Fingerprints of the listed authorities in its chain, at least one. It is trusted while all of them are listed. */
      readonly authorities: readonly string[];
    };

/** A circular chain must not be followed for ever. */
const MAX_CHAIN_LENGTH = 16;

interface ChainLink {
  readonly raw?: Buffer;
  readonly fingerprint256?: string;
  readonly valid_from?: string;
  readonly valid_to?: string;
  readonly issuerCertificate?: ChainLink;
}

/**
 * Holds for the connection's life: renegotiation is off, and no session is resumed.
 * @param listed fingerprints of the authorities by which it was verified.
 */
export function peerOf(socket: TLSSocket, listed: ReadonlySet<string>, now: Instant): Peer {
  // Only the leaf of an untrusted chain is read: strangers may send hundreds of certificates, which take 40 ms.
  const { raw } = socket.getPeerCertificate() as ChainLink;
  if (raw === undefined) return { kind: 'unnamed' };
  const fault = verificationFault(socket);
  if (fault !== undefined) return { kind: 'refused', why: `is not trusted: ${fault}` };
  const named = identityOf(raw);
  if (named.kind === 'nobody') return { kind: 'refused', why: named.why };
  const chain = chainOf(socket.getPeerCertificate(true) as ChainLink);
  if (chain === undefined) {
    return { kind: 'refused', why: 'came with one that has the name of its authority, and did not sign it' };
  }
  const authorities = authoritiesOf(chain, listed, now.wallMs);
  if (authorities.length === 0) return { kind: 'refused', why: 'leads to none of the authorities' };
  const ends = chain.map(({ valid_to }) => Date.parse(valid_to ?? ''));
  if (ends.some(Number.isNaN)) return { kind: 'refused', why: 'has an end that cannot be read' };
  const endsAt = later(now, firstEnd(ends, now.wallMs) - now.wallMs);
  return {
    kind: 'named',
    caller: named.caller,
    endsAt,
    authorities,
  };
}

/**
 * From the leaf upwards. Node links certificates only by names and key ids, so each signature is verified.
 * @returns undefined if a link is not signed by the next.
 */
function chainOf(leaf: ChainLink): ChainLink[] | undefined {
  const chain: ChainLink[] = [];
  let link: ChainLink | undefined = leaf;
  while (link !== undefined && chain.length < MAX_CHAIN_LENGTH && !chain.includes(link)) {
    chain.push(link);
    const issuer: ChainLink | undefined = link.issuerCertificate;
    if (issuer !== undefined && !isSignedBy(link, issuer)) return undefined;
    link = issuer;
  }
  return chain;
}

/** If Node links a certificate outside its validity, OpenSSL used another, perhaps of another authority. */
function authoritiesOf(
  chain: readonly ChainLink[],
  listed: ReadonlySet<string>,
  nowWallMs: number,
): string[] {
  const own = chain.flatMap(({ fingerprint256 = '' }) =>
    listed.has(fingerprint256) ? [fingerprint256] : [],
  );
  return chain.every((link) => isValid(link, nowWallMs)) ? own : [...listed];
}

function isValid({ valid_from = '', valid_to = '' }: ChainLink, nowWallMs: number): boolean {
  return Date.parse(valid_from) <= nowWallMs && Date.parse(valid_to) > nowWallMs;
}

/** By the wall clock. Node may link an expired intermediate that OpenSSL did not use, if a renewed one was sent, too. */
function firstEnd([leaf = 0, ...above]: readonly number[], nowWallMs: number): number {
  return Math.min(leaf, ...above.filter((endsMs) => endsMs > nowWallMs));
}

function isSignedBy({ raw }: ChainLink, issuer: ChainLink): boolean {
  if (raw === undefined || issuer.raw === undefined) return false;
  try {
    return new X509Certificate(raw).verify(new X509Certificate(issuer.raw).publicKey);
  } catch {
    // A key that OpenSSL cannot read has signed nothing that it accepted.
    return false;
  }
}

/** Node reports it only for sockets of its own server, so it is read from the handle. Without it, nobody is trusted. */
function verificationFault(socket: TLSSocket): string | undefined {
  const handle = (socket as unknown as { _handle?: { verifyError?(): Error | null } | null })._handle;
  if (typeof handle?.verifyError !== 'function') return 'its verification is unknown on this version of Node';
  const error = handle.verifyError() as (Error & { code?: string }) | null;
  return error === null ? undefined : (error.code ?? error.message);
}

type NamedByCertificate =
  | { readonly kind: 'named'; readonly caller: SpiffeCaller | CertificateCaller }
  /** @property why completes "the client certificate …". */
  | { readonly kind: 'nobody'; readonly why: string };

/** SPIFFE-ID §2: a trust domain and path segments only. Characters. */
const MAX_SPIFFE_ID_LENGTH = 2048;
const SPIFFE_ID = /^spiffe:\/\/[a-z0-9._-]{1,255}(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._-]+)*$/;
const ANY_SPIFFE = /^spiffe:/i;

const DNS_NAME = /^[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*$/;
const MAX_DNS_NAME_LENGTH = 253;

const COMMON_NAME = '2.5.4.3';
const MAX_COMMON_NAME_LENGTH = 64;

/** A few suffice. */
const MAX_NAMES = 32;

/**
 * The SPIFFE id if there is one: a second URI makes the certificate invalid (X.509-SVID §2). Otherwise the DNS names,
 * lower-case; the common name only if there are no alternative names at all (RFC 9525 §2).
 * @param der of the leaf.
 */
export function identityOf(der: Buffer): NamedByCertificate {
  let parsed: Certificate;
  let alternatives: SubjectAlternativeName | undefined;
  try {
    parsed = AsnConvert.parse(der, Certificate);
    const extensions = (parsed.tbsCertificate.extensions ?? []).filter(
      ({ extnID }) => extnID === id_ce_subjectAltName,
    );
    if (extensions.length > 1) return nobody('has its alternative names twice');
    const [extension] = extensions;
    alternatives = extension && AsnConvert.parse(extension.extnValue.buffer, SubjectAlternativeName);
  } catch {
    return nobody('cannot be read');
  }
  if (alternatives === undefined) return byCommonName(parsed);
  const uris = alternatives.flatMap(({ uniformResourceIdentifier: uri }) => (uri === undefined ? [] : [uri]));
  if (uris.some((uri) => ANY_SPIFFE.test(uri))) return bySpiffeId(uris);
  const names = alternatives.flatMap(({ dNSName }) => (dNSName === undefined ? [] : [dNSName]));
  return byDnsNames(names);
}

function bySpiffeId(uris: readonly string[]): NamedByCertificate {
  const [id = ''] = uris;
  if (uris.length > 1) return nobody('has more than one URI, beside which a SPIFFE id is not believed');
  if (id.length > MAX_SPIFFE_ID_LENGTH || !SPIFFE_ID.test(id)) return nobody('has a SPIFFE id that is none');
  return { kind: 'named', caller: { kind: 'spiffe', uri: id } };
}

function byDnsNames(names: readonly string[]): NamedByCertificate {
  if (names.length > MAX_NAMES) return nobody(`has more than ${MAX_NAMES} DNS names`);
  const usable = names.filter((name) => name.length <= MAX_DNS_NAME_LENGTH && DNS_NAME.test(name));
  // A wildcard names servers.
  if (usable.length === 0) return nobody('has neither a SPIFFE id nor a DNS name');
  const sorted = [...new Set(usable.map((name) => name.toLowerCase()))].sort();
  return { kind: 'named', caller: { kind: 'certificate', by: 'dns_names', names: sorted } };
}

function byCommonName({ tbsCertificate: { subject } }: Certificate): NamedByCertificate {
  const values = [...subject].flatMap((part) =>
    [...part].filter(({ type }) => type === COMMON_NAME).map(({ value }) => value.toString()),
  );
  const [name = ''] = values;
  if (values.length !== 1 || name === '' || name.length > MAX_COMMON_NAME_LENGTH) {
    return nobody('has no alternative names, and not one common name');
  }
  return { kind: 'named', caller: { kind: 'certificate', by: 'common_name', names: [name] } };
}

function nobody(why: string): NamedByCertificate {
  return { kind: 'nobody', why };
}
