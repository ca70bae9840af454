/**
 * Client secrets as scrypt hashes (RFC 7914), written as a PHC string: `$scrypt$ln=14,r=8,p=5$<salt>$<hash>`, salt and
 * hash in Base64 without padding.
 */

import { randomBytes, scrypt } from 'node:crypto';

export interface ScryptCost {
  /** Base-2 logarithm of N. */
  readonly ln: number;
  readonly r: number;
  readonly p: number;
}

export interface ScryptHash {
  /** The PHC string: with its own salt, it stands for one secret of one client. */
  readonly text: string;
  readonly cost: ScryptCost;
  readonly salt: Buffer;
  readonly hash: Buffer;
}

/** Computes the scrypt of a secret; `bytes` long. */
export type ScryptDerivation = (
  secret: string,
  salt: Buffer,
  cost: ScryptCost,
  bytes: number,
) => Promise<Buffer>;

/** OWASP's recommendation for 16 MiB: the smallest memory on its list, so that the service fits a small container. */
const DEFAULT_COST: ScryptCost = { ln: 14, r: 8, p: 5 };

const SALT_BYTES = 16;
const HASH_BYTES = 32;

/** A hash that needs more is a mistake or an attack on our memory: 128·N·r bytes. */
const MAX_MEMORY_BYTES = 256 * 2 ** 20;

export const deriveScrypt: ScryptDerivation = (secret, salt, cost, bytes) => {
  const { r, p } = cost;
  // Node counts a little more than 128·N·r against maxmem.
  const options = { N: 2 ** cost.ln, r, p, maxmem: 2 * memoryBytes(cost) + 1024 * 1024 };
  return new Promise((resolve, reject) => {
    scrypt(secret, salt, bytes, options, (error, key) => (error === null ? resolve(key) : reject(error)));
  });
};

/** The PHC string of a secret under a fresh random salt. */
export async function hashSecret(secret: string, cost: ScryptCost = DEFAULT_COST): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const hash = await deriveScrypt(secret, salt, cost, HASH_BYTES);
  return `$scrypt$ln=${cost.ln},r=${cost.r},p=${cost.p}$${unpadded(salt)}$${unpadded(hash)}`;
}

/** The parsed hash; undefined if it is none, or its costs or lengths are not sane. */
export function parseScryptHash(text: string): ScryptHash | undefined {
  const [, ln, r, p, saltText, hashText] =
    /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/.exec(text) ?? [];
  if (saltText === undefined || hashText === undefined) return undefined;
  const cost = { ln: Number(ln), r: Number(r), p: Number(p) };
  const salt = Buffer.from(saltText, 'base64');
  const hash = Buffer.from(hashText, 'base64');
  const sane =
    cost.ln >= 1 &&
    cost.ln < 16 * cost.r &&
    cost.r >= 1 &&
    cost.p >= 1 &&
    memoryBytes(cost) <= MAX_MEMORY_BYTES &&
    salt.length >= 8 &&
    hash.length >= 16 &&
    hash.length <= 64;
  const canonical = unpadded(salt) === saltText && unpadded(hash) === hashText;
  return sane && canonical ? { text, cost, salt, hash } : undefined;
}

function memoryBytes({ ln, r }: ScryptCost): number {
  return 128 * 2 ** ln * r;
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}
