/** A DPoP proof by itself: what RFC 9449 §4.3 asks of it, but for nonce, time and replay. */

import { decodeProtectedHeader, EmbeddedJWK, errors, type JWTPayload, jwtVerify } from 'jose';

/** `Ed25519` is the name of RFC 9864 for what `EdDSA` means here. */
export const DPOP_ALGORITHMS = ['ES256', 'ES384', 'EdDSA', 'Ed25519', 'RS256', 'PS256'];

/** That of an RSA key of 8192 bits is smaller. */
const MAX_PROOF_BYTES = 4096;

/** Of every kind of key, whether its algorithm is taken or not. */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv'];

/** Labels of a metric. */
export const PROOF_FAULTS = [
  'missing',
  'repeated',
  'malformed',
  'type',
  'algorithm',
  'key',
  'signature',
  'claims',
  'method',
  'url',
  'nonce',
  'time',
  'replay',
] as const;

export class ProofFault {
  readonly reason: (typeof PROOF_FAULTS)[number];
  /** Holds nothing of the proof. */
  readonly description: string;

  constructor(reason: ProofFault['reason'], description: string) {
    this.reason = reason;
    this.description = description;
  }
}

interface Proof {
  readonly jwk: Readonly<Record<string, unknown>>;
  readonly tokenId: string;
  /** Seconds since the Unix epoch. */
  readonly issuedAt: number;
  readonly nonce: string | undefined;
}

/** @param nowMs wall time, for `exp` and `nbf` alone. */
export async function readProof(
  text: string,
  { tokenUrl, nowMs }: { readonly tokenUrl: string; readonly nowMs: number },
): Promise<Proof | ProofFault> {
  if (text.length > MAX_PROOF_BYTES) {
    return new ProofFault('malformed', `the DPoP proof is larger than ${MAX_PROOF_BYTES} bytes`);
  }
  const header = headerOf(text);
  if (header === undefined) return MALFORMED;
  if (header.typ !== 'dpop+jwt') {
    return new ProofFault('type', 'the typ of the DPoP proof must be dpop+jwt');
  }
  if (!DPOP_ALGORITHMS.some((name) => name === header.alg)) {
    const names = DPOP_ALGORITHMS.join(', ');
    return new ProofFault('algorithm', `the alg of the DPoP proof must be one of ${names}`);
  }
  const jwk: Readonly<Record<string, unknown>> = { ...header.jwk };
  if (PRIVATE_MEMBERS.some((name) => Object.hasOwn(jwk, name))) {
    return new ProofFault('key', 'the jwk of the DPoP proof must have no private member');
  }
  const payload = await verifiedPayload(text, header, nowMs);
  if (payload instanceof ProofFault) return payload;

  const { htm, htu, iat, jti, nonce } = payload;
  const texts = [htm, htu, jti].every((claim) => typeof claim === 'string' && claim !== '');
  if (!texts || typeof iat !== 'number' || !['string', 'undefined'].includes(typeof nonce)) {
    return WRONG_CLAIMS;
  }
  if (htm !== 'POST') return new ProofFault('method', 'the htm of the DPoP proof must be POST');
  if (normalUrl(String(htu)) !== normalUrl(tokenUrl)) {
    return new ProofFault('url', `the htu of the DPoP proof must be ${tokenUrl}`);
  }
  return { jwk, tokenId: String(jti), issuedAt: iat, nonce: nonce as string | undefined };
}

const MALFORMED = new ProofFault('malformed', 'the DPoP proof is not a well-formed JWT');

type Header = ReturnType<typeof decodeProtectedHeader>;

function headerOf(text: string): Header | undefined {
  try {
    return decodeProtectedHeader(text);
  } catch {
    return undefined;
  }
}

async function verifiedPayload(
  text: string,
  header: Header,
  nowMs: number,
): Promise<JWTPayload | ProofFault> {
  try {
    const key = await EmbeddedJWK(header as Parameters<typeof EmbeddedJWK>[0]).catch(() => undefined);
    if (key === undefined) return WRONG_KEY;
    return (await jwtVerify(text, key, { currentDate: new Date(nowMs) })).payload;
  } catch (error) {
    if (error instanceof errors.JWSSignatureVerificationFailed) {
      return new ProofFault('signature', 'the signature of the DPoP proof is not by its jwk');
    }
    if (error instanceof errors.JWTExpired || error instanceof errors.JWTClaimValidationFailed) {
      return WRONG_CLAIMS;
    }
    return error instanceof errors.JOSEError ? MALFORMED : WRONG_KEY;
  }
}

const WRONG_CLAIMS = new ProofFault(
  'claims',
  'the DPoP proof must have htm, htu, jti and iat, each of its type, and no exp or nbf that excludes now',
);

const WRONG_KEY = new ProofFault(
  'key',
  'the jwk of the DPoP proof must be a public key for its alg, RSA of at least 2048 bits',
);

/**
 * Without query and fragment (RFC 9449 §4.3), normalised as of RFC 3986 §6.2.2 and §6.2.3.
 * @returns undefined for what is no HTTP URL. `URL` alone would mend much.
 */
function normalUrl(text: string): string | undefined {
  const url = /^https?:\/\/[\x21-\x5b\x5d-\x7e]+$/i.test(text) ? URL.parse(text) : null;
  if (url === null) return undefined;
  url.search = '';
  url.hash = '';
  return url.href.replaceAll(/%[0-9a-f]{2}/gi, (octet) => {
    const character = String.fromCharCode(Number.parseInt(octet.slice(1), 16));
    return /[\w.~-]/.test(character) ? character : octet.toUpperCase();
  });
}
