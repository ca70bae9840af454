/** What the other end of a TLS connection has proved. */

import { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import type { CertificateCaller, SpiffeCaller } from '../callers/caller.ts';
import { type Instant, later } from '../platform/time/clock.ts';
import { identityOf } from './certificate-identity.ts';

export type Peer =
  /** It has shown no certificate, or was not asked for one. */
  | { readonly kind: 'unnamed' }
  /** @property why completes "the client certificate …". */
  | { readonly kind: 'refused'; readonly why: string }
  | {
      readonly kind: 'named';
      readonly caller: SpiffeCaller | CertificateCaller;
      /** When the first certificate of the chain expires, as far as known. */
      readonly endsAt: Instant;
      /** Fingerprints of the listed authorities in its chain, one at least: it is trusted as long as all of them are listed. */
      readonly authorities: readonly string[];
    };

/** Chains are a few certificates long; a circular one must not be followed for ever. */
const MAX_CHAIN_LENGTH = 16;

interface ChainLink {
  readonly raw?: Buffer;
  readonly fingerprint256?: string;
  readonly valid_from?: string;
  readonly valid_to?: string;
  readonly issuerCertificate?: ChainLink;
}

/**
 * Who the peer of a connection is after its handshake. As renegotiation is off and no session is resumed, the answer
 * holds for the connection's life.
 * @param listed fingerprints of the authorities by which it was verified.
 */
export function peerOf(socket: TLSSocket, listed: ReadonlySet<string>, now: Instant): Peer {
  // Of an untrusted chain only the leaf is read: strangers may send hundreds of certificates above it, which take 40 ms.
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
 * From the leaf upwards. Node links the certificates that the peer sent only by names and key ids, so each signature is
 * verified here: the chain is then the one that OpenSSL accepted.
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

/**
 * The listed ones in a chain. If Node links a certificate outside its validity, OpenSSL used another, which may be of
 * any authority.
 */
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

/**
 * When the first certificate of a valid chain expires, by the wall clock. A peer that has renewed its intermediate may
 * send both, and Node links whichever comes first; an expired one is not the one that OpenSSL used, which Node does not
 * show.
 */
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

/**
 * What OpenSSL found wrong with the peer's chain. Node reports it only for sockets of its own server; for others it is
 * kept where it is read here. If it is not there, nobody is trusted.
 */
function verificationFault(socket: TLSSocket): string | undefined {
  const handle = (socket as unknown as { _handle?: { verifyError?(): Error | null } | null })._handle;
  if (typeof handle?.verifyError !== 'function') return 'its verification is unknown on this version of Node';
  const error = handle.verifyError() as (Error & { code?: string }) | null;
  return error === null ? undefined : (error.code ?? error.message);
}
