/**
 * Identifies the caller. A right secret that is kept in clear, or known from scrypt, is admitted at once. Other
 * attempts count against limits, wait for scrypt, and are answered at a time that reveals nothing.
 */

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { decodeFormComponent } from '../platform/form.ts';
import { LruMap } from '../platform/limits/lru-map.ts';
import type { Logger } from '../platform/log/logger.ts';
import { SingleFlight } from '../platform/time/async.ts';
import type { Clock } from '../platform/time/clock.ts';
import { type Client, type ClientSet, type ClientStore, sha256 } from './clients.ts';
import { createLoginThrottle, networkOf } from './login-throttle.ts';
import { Refusal } from './refusal.ts';
import { type createDerivationQueue, DerivationQueueFull, type ScryptHash } from './secret-hashing.ts';

interface AuthenticationOutcome {
  readonly client: Client | Refusal;
  /** Set even if the secret was wrong. Only such an id may be logged. */
  readonly named?: string;
}

interface Claim {
  readonly client: Client | undefined;
  readonly secret: string;
}

interface OpenClaim {
  readonly client: Client;
  readonly secret: string;
  readonly hash: ScryptHash;
}

type Standing =
  | { readonly kind: 'right'; readonly client: Client }
  /** Empty if the secret is known to be wrong. */
  | { readonly kind: 'doubtful'; readonly open: readonly OpenClaim[] };

export type CallerVerification = (
  field: string | undefined,
  address: string,
) => Promise<AuthenticationOutcome>;

const ABSENT = new Refusal('invalid_client', 'client authentication with HTTP Basic is required');
const MALFORMED = new Refusal('invalid_client', 'the Authorization header is not well-formed HTTP Basic');
const WRONG = new Refusal('invalid_client', 'the client id or the client secret is wrong');
const BUSY = new Refusal('temporarily_unavailable', 'too many requests are waiting to be authenticated', 1);

/** No secret has this digest. */
const NO_DIGEST = Buffer.alloc(32);
const NO_SALT = Buffer.alloc(16);
const HASH_BYTES = 32;

export function createCallerVerification(
  store: ClientStore,
  queue: ReturnType<typeof createDerivationQueue>,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): CallerVerification {
  const memory = createDerivationMemory();
  const limits = createLoginThrottle(clock);
  const wrongAnswers = createConstantTimeDelay(clock);
  const key = randomBytes(32);

  let clients: ClientSet | undefined;
  /** Nobody joins a check against replaced clients. */
  let checks = new SingleFlight<Client | undefined>();

  return async (field, address) => {
    if (field === undefined) return { client: ABSENT };
    const readings = readBasicCredentials(field);
    const last = readings.at(-1);
    if (last === undefined) return { client: MALFORMED };

    const claimsIn = (set: ClientSet): readonly Claim[] =>
      readings.map(({ clientId, secret }) => ({ client: set.find(clientId), secret }));
    const set = currentClients();
    const claims = claimsIn(set);
    const standing = judge(claims, memory);
    if (standing.kind === 'right') return { client: standing.client, named: standing.client.clientId };

    const known = claims.find(({ client }) => client !== undefined)?.client;
    const named = known === undefined ? {} : { named: known.clientId };
    const startedAtMs = clock.monotonicMs();
    // A rollout's pods send the same field at once, and share a check.
    const same = createHmac('sha256', key).update(field).digest('base64');
    const isFirst = checks.get(same) === undefined;
    // Another encoding of an id counts as the same name.
    const attempt = isFirst ? limits.begin(address, last.clientId) : limits.join(address);
    if ('retryAfterSeconds' in attempt) {
      if (isFirst) settleInSpareTime(standing.open);
      return { client: tooMany(attempt.retryAfterSeconds), ...named };
    }
    const check = checks.run(same, () => verify(standing.open, set, networkOf(address)));
    try {
      const client = stillRight(await check, set, claimsIn);
      if (client !== undefined) {
        attempt.forgiven();
        return { client, ...named };
      }
      attempt.failed();
    } catch (error) {
      attempt.forgiven();
      if (error instanceof DerivationQueueFull) return { client: BUSY, ...named };
      throw error;
    }
    // Without any hash in the set, time reveals nothing.
    if (set.dearestCost !== undefined) await wrongAnswers.wait(startedAtMs);
    return { client: WRONG, ...named };
  };

  function currentClients(): ClientSet {
    const current = store.current();
    if (current !== clients) {
      clients = current;
      checks = new SingleFlight();
      memory.keepOnly(current.hashes);
    }
    return current;
  }

  /** The clients may have been replaced meanwhile. */
  function stillRight(
    checked: Client | undefined,
    set: ClientSet,
    claimsIn: (set: ClientSet) => readonly Claim[],
  ): Client | undefined {
    const current = currentClients();
    if (current === set) return checked;
    const standing = judge(claimsIn(current), memory);
    return standing.kind === 'right' ? standing.client : undefined;
  }

  async function verify(
    open: readonly OpenClaim[],
    set: ClientSet,
    network: string,
  ): Promise<Client | undefined> {
    const startedAtMs = clock.monotonicMs();
    try {
      for (const { client, secret, hash } of open) {
        const asker = { clientId: client.clientId, address: network };
        const derived = await queue.derive(asker, secret, hash.salt, hash.cost, hash.hash.length);
        if (learn(hash, secret, derived)) return client;
      }
      // When idle, every wrong secret costs the same work.
      if (open.length === 0 && set.dearestCost !== undefined) {
        await queue.deriveIfIdle('', NO_SALT, set.dearestCost, HASH_BYTES);
      }
      return undefined;
    } finally {
      wrongAnswers.took(clock.monotonicMs() - startedAtMs);
    }
  }

  /** Amid a flood, a caller told to retry may have the right secret. Idle time finds out before it returns. */
  function settleInSpareTime(open: readonly OpenClaim[]): void {
    const settle = async (): Promise<void> => {
      for (const { secret, hash } of open) {
        const derived = await queue.deriveIfIdle(secret, hash.salt, hash.cost, hash.hash.length);
        if (derived === undefined || learn(hash, secret, derived)) return;
      }
    };
    settle().catch((error: unknown) => log.error({ err: error }, 'a client secret could not be hashed'));
  }

  function learn(hash: ScryptHash, secret: string, derived: Buffer): boolean {
    const right = timingSafeEqual(hash.hash, derived);
    if (currentClients().hashes.has(hash.text)) memory.learn(hash, secret, right);
    return right;
  }
}

/** Takes the same time for all but a right secret. */
function judge(claims: readonly Claim[], memory: ScryptCache): Standing {
  const open: OpenClaim[] = [];
  let right: Client | undefined;
  for (const { client, secret } of claims) {
    const digest = sha256(secret);
    // Always two comparisons of each kind, so that time reveals nothing.
    for (const stored of [client?.secrets[0], client?.secrets[1]]) {
      const clear = timingSafeEqual(stored?.kind === 'sha256' ? stored.digest : NO_DIGEST, digest);
      const hash = stored?.kind === 'scrypt' ? stored.hash : undefined;
      const recalled = memory.recall(hash, secret);
      if (client === undefined) continue;
      if (clear || recalled === 'right') right ??= client;
      if (hash !== undefined && recalled === 'unknown') open.push({ client, secret, hash });
    }
  }
  return right === undefined ? { kind: 'doubtful', open } : { kind: 'right', client: right };
}

function tooMany(retryAfterSeconds: number): Refusal {
  return new Refusal(
    'too_many_requests',
    'too many wrong secrets came from this address, of this client or in all',
    retryAfterSeconds,
  );
}

interface ClaimedCredentials {
  readonly clientId: string;
  readonly secret: string;
}

/**
 * The readings of the field: as it stands (RFC 7617 §2) and, if different, form-decoded (RFC 6749 §2.3.1). None unless
 * it is the canonical Base64 of UTF-8 text with a colon; the first colon separates.
 */
export function readBasicCredentials(field: string): readonly ClaimedCredentials[] {
  const [, encoded] = /^basic +([a-z0-9+/]+={0,2})$/i.exec(field) ?? [];
  if (encoded === undefined) return [];
  const bytes = Buffer.from(encoded, 'base64');
  // Buffer skips invalid characters, so only the round trip proves Base64.
  if (bytes.toString('base64') !== encoded) return [];
  let pair: string;
  try {
    pair = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return [];
  }
  const colon = pair.indexOf(':');
  if (colon < 0) return [];

  const raw = { clientId: pair.slice(0, colon), secret: pair.slice(colon + 1) };
  const clientId = decodeFormComponent(raw.clientId);
  const secret = decodeFormComponent(raw.secret);
  if (clientId === undefined || secret === undefined) return [raw];
  return clientId === raw.clientId && secret === raw.secret ? [raw] : [raw, { clientId, secret }];
}

/**
 * Wrong secrets are answered a fixed time after the request, or whole steps later. This reveals neither whether the
 * client exists nor how its secret is kept.
 */
interface ConstantTimeDelay {
  /** @param startedAtMs monotonic. */
  wait(startedAtMs: number): Promise<void>;
  /** The fixed time grows to cover such a check, up to a bound. */
  took(durationMs: number): void;
}

/** Several derivations at the default cost. */
const STEP_MS = 1000;
/** Most callers give up after ten seconds. */
const MAX_SOONEST_MS = 5000;

function createConstantTimeDelay(clock: Clock): ConstantTimeDelay {
  let soonestMs = STEP_MS;
  return {
    async wait(startedAtMs) {
      const sinceMs = clock.monotonicMs() - startedAtMs;
      const answerMs = Math.max(soonestMs, wholeSteps(sinceMs));
      await new Promise<void>((resolve) => clock.after(answerMs - sinceMs, resolve));
    },
    took(durationMs) {
      soonestMs = Math.max(soonestMs, Math.min(wholeSteps(durationMs), MAX_SOONEST_MS));
    },
  };
}

function wholeSteps(ms: number): number {
  return Math.ceil(ms / STEP_MS) * STEP_MS;
}

interface ScryptCache {
  /** Takes constant time. Without a hash the answer is `unknown`. */
  recall(hash: ScryptHash | undefined, secret: string): 'right' | 'wrong' | 'unknown';
  learn(hash: ScryptHash, secret: string, right: boolean): void;
  keepOnly(hashes: ReadonlySet<string>): void;
  readonly size: { readonly right: number; readonly wrong: number };
}

/** A pod with a wrong secret keeps sending it. */
const MAX_WRONG_SECRETS = 4096;

/** No digest is all zeros. */
const NONE = Buffer.alloc(32);

/**
 * Remembers whether a secret belongs to a hash, which never changes. Keeps only digests under a key of this process.
 * @param mostWrong beyond it the least recently used wrong secret is dropped. Right ones are one per hash.
 */
export function createDerivationMemory(mostWrong = MAX_WRONG_SECRETS): ScryptCache {
  const key = randomBytes(32);
  const right = new Map<string, Buffer>();
  /** From a digest to its hash. */
  const wrong = new LruMap<string, string>({ max: mostWrong });

  function digestOf(hash: ScryptHash | undefined, secret: string): Buffer {
    // PHC strings hold no NUL, so all texts differ.
    return createHmac('sha256', key).update(`${hash?.text}\0${secret}`).digest();
  }

  return {
    recall(hash, secret) {
      const digest = digestOf(hash, secret);
      if (timingSafeEqual((hash && right.get(hash.text)) ?? NONE, digest)) return 'right';
      return wrong.get(digest.toString('base64')) === undefined ? 'unknown' : 'wrong';
    },
    learn(hash, secret, isRight) {
      const digest = digestOf(hash, secret);
      if (isRight) {
        right.set(hash.text, digest);
        return;
      }
      wrong.set(digest.toString('base64'), hash.text);
    },
    keepOnly(hashes) {
      for (const text of right.keys()) if (!hashes.has(text)) right.delete(text);
      for (const [name, about] of wrong.entries()) if (!hashes.has(about)) wrong.delete(name);
    },
    get size() {
      return { right: right.size, wrong: wrong.size };
    },
  };
}
