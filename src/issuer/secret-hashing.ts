/** scrypt hashes (RFC 7914) in PHC strings: `$scrypt$ln=14,r=8,p=5$<salt>$<hash>`, in Base64 without padding. */

import { randomBytes, scrypt } from 'node:crypto';
import { FairRing } from '../platform/limits/fair-queue.ts';

export interface ScryptCost {
  /** Base-2 logarithm of N. */
  readonly ln: number;
  readonly r: number;
  readonly p: number;
}

export interface ScryptHash {
  /** PHC string. */
  readonly text: string;
  readonly cost: ScryptCost;
  readonly salt: Buffer;
  readonly hash: Buffer;
}

/** @returns `bytes` octets. */
export type ScryptDerivation = (
  secret: string,
  salt: Buffer,
  cost: ScryptCost,
  bytes: number,
) => Promise<Buffer>;

/** OWASP's recommendation for 16 MiB, which fits a small container. */
const DEFAULT_COST: ScryptCost = { ln: 14, r: 8, p: 5 };

const SALT_BYTES = 16;
const HASH_BYTES = 32;

/** 128·N·r bytes. More is a mistake or an attack. */
const MAX_MEMORY_BYTES = 256 * 2 ** 20;

export const deriveScrypt: ScryptDerivation = (secret, salt, cost, bytes) => {
  const { r, p } = cost;
  // Node counts a little more than 128·N·r.
  const options = { N: 2 ** cost.ln, r, p, maxmem: 2 * memoryBytes(cost) + 1024 * 1024 };
  return new Promise((resolve, reject) => {
    scrypt(secret, salt, bytes, options, (error, key) => (error === null ? resolve(key) : reject(error)));
  });
};

/** The PHC string, with a random salt. */
export async function hashSecret(secret: string, cost: ScryptCost = DEFAULT_COST): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const hash = await deriveScrypt(secret, salt, cost, HASH_BYTES);
  return `$scrypt$ln=${cost.ln},r=${cost.r},p=${cost.p}$${unpadded(salt)}$${unpadded(hash)}`;
}

/** Undefined if it is no hash, or its costs or lengths are not sane. */
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

export class DerivationQueueFull extends Error {
  override readonly name = 'DerivationQueueFull';
}

interface DerivationQueueLimits {
  /** Each takes a core and 128·N·r bytes. */
  readonly concurrent: number;
  readonly waiting: number;
}

/** Turns rotate among clients, and for each client among addresses. */
interface Asker {
  readonly clientId: string;
  readonly address: string;
}

interface ScryptQueue {
  /** Rejects with `DerivationQueueFull` if there is no room, or a waiter with fewer needs it. */
  derive(asker: Asker, ...work: Parameters<ScryptDerivation>): Promise<Buffer>;
  /** Resolves to undefined if anything else is being derived. */
  deriveIfIdle(...work: Parameters<ScryptDerivation>): Promise<Buffer | undefined>;
}

interface Waiter {
  start(): void;
  turnAway(): void;
}

/** By client, then by address; the next first. */
type Waiting = Map<string, FairRing<Waiter>>;

/** A flood of wrong secrets must not take all memory, cores and turns. */
export function createDerivationQueue(derive: ScryptDerivation, limits: DerivationQueueLimits): ScryptQueue {
  const waiting: Waiting = new Map();
  let waiters = 0;
  let running = 0;

  async function run(work: Parameters<ScryptDerivation>): Promise<Buffer> {
    try {
      return await derive(...work);
    } finally {
      // It hands its place over, so `running` does not change.
      const next = nextWaiter(waiting);
      if (next === undefined) running--;
      else next.start();
    }
  }

  async function waitForTurn(asker: Asker): Promise<void> {
    if (waiters >= limits.waiting && !makeRoom(waiting, asker)) throw full();
    const turn = Promise.withResolvers<void>();
    const own = waiting.get(asker.clientId) ?? new FairRing<Waiter>();
    const waiter: Waiter = {
      start() {
        waiters--;
        turn.resolve();
      },
      turnAway() {
        waiters--;
        own.remove(asker.address, waiter);
        turn.reject(full());
      },
    };
    waiters++;
    waiting.set(asker.clientId, own);
    own.add(asker.address, waiter);
    await turn.promise;
  }

  return {
    async derive(asker, ...work) {
      if (running < limits.concurrent) running++;
      else await waitForTurn(asker);
      return await run(work);
    },
    async deriveIfIdle(...work) {
      if (running > 0) return undefined;
      running++;
      return await run(work);
    },
  };
}

function full(): DerivationQueueFull {
  return new DerivationQueueFull('too many secrets wait to be hashed');
}

function nextWaiter(waiting: Waiting): Waiter | undefined {
  for (const [clientId, own] of waiting) {
    waiting.delete(clientId);
    const next = own.next();
    if (own.size > 0) waiting.set(clientId, own);
    return next;
  }
  return undefined;
}

/**
 * Turns away the last waiter of the client with the most. If that is the asker's, its address with the most gives way
 * to one with fewer.
 */
function makeRoom(waiting: Waiting, { clientId, address }: Asker): boolean {
  const own = waiting.get(clientId);
  let greediest = own;
  for (const ring of waiting.values()) if (ring.size > (greediest?.size ?? 0)) greediest = ring;
  const isOther = (greediest?.size ?? 0) > (own?.size ?? 0) + 1;
  const last = isOther ? greediest?.newestOfMost(0) : own?.toGiveWayFor(address);
  last?.turnAway();
  return last !== undefined;
}
