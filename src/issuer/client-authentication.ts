/**
 * Who is calling. The work done depends on the field that was sent and on the set of clients as a whole, never on
 * whether the client exists, how its secret is kept or how much of it is right.
 */

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { readBasicCredentials } from './basic-credentials.ts';
import { type Client, sha256 } from './client.ts';
import type { ClientSet, ClientStore } from './client-store.ts';
import { DerivationQueueFull } from './derivation-queue.ts';
import { Refusal } from './refusal.ts';
import type { ScryptCost, ScryptDerivation, ScryptHash } from './scrypt-hash.ts';

export interface AuthenticationOutcome {
  /** The authenticated client, or why there is none. */
  readonly client: Client | Refusal;
  /** The registered client that was named, whether or not the secret was right. Only such an id may be logged. */
  readonly named?: string;
}

/** One reading of the field, with the registered client that it names. */
interface Claim {
  readonly client: Client | undefined;
  readonly secret: string;
}

/** Takes the Authorization field, if there is one. */
export type ClientAuthentication = (field: string | undefined) => Promise<AuthenticationOutcome>;

const ABSENT = new Refusal('invalid_client', 'client authentication with HTTP Basic is required');
const MALFORMED = new Refusal('invalid_client', 'the Authorization header is not well-formed HTTP Basic');
const WRONG = new Refusal('invalid_client', 'the client id or the client secret is wrong');
const BUSY = new Refusal('temporarily_unavailable', 'too many requests are waiting to be authenticated');

/** What an unknown client's secret is compared with; no secret has this digest. */
const NO_DIGEST = Buffer.alloc(32);
const NO_SALT = Buffer.alloc(16);
const NO_HASH = Buffer.alloc(32);

export function createClientAuthentication(
  store: ClientStore,
  derive: ScryptDerivation,
): ClientAuthentication {
  // A secret once verified by scrypt is remembered as a digest under a key that only this process knows, so that
  // later grants are cheap. Gone with the client object: a reload forgets.
  const remembered = new WeakMap<Client, Buffer>();
  const key = randomBytes(32);
  const keyedDigest = (secret: string): Buffer => createHmac('sha256', key).update(secret).digest();

  // By the set that is asked, so that nobody joins a check against clients that have since been replaced.
  const inFlight = new WeakMap<ClientSet, Map<string, Promise<AuthenticationOutcome>>>();

  return async (field) => {
    if (field === undefined) return { client: ABSENT };
    const readings = readBasicCredentials(field);
    if (readings.length === 0) return { client: MALFORMED };

    const clients = store.current();
    const claims = readings.map(({ clientId, secret }) => ({ client: clients.find(clientId), secret }));
    for (const { client, secret } of claims) {
      const digest = (client === undefined ? undefined : remembered.get(client)) ?? NO_DIGEST;
      const right = timingSafeEqual(digest, keyedDigest(secret));
      if (right && client !== undefined) return { client, named: client.clientId };
    }
    // A rollout's pods all come at once with the same field: they share one check.
    const checks = inFlight.get(clients) ?? new Map<string, Promise<AuthenticationOutcome>>();
    inFlight.set(clients, checks);
    const same = keyedDigest(field).toString('base64');
    const check = checks.get(same) ?? verify(clients, claims).finally(() => checks.delete(same));
    checks.set(same, check);
    return await check;
  };

  async function verify(clients: ClientSet, claims: readonly Claim[]): Promise<AuthenticationOutcome> {
    const known = claims.find(({ client }) => client !== undefined)?.client;
    const named = known === undefined ? {} : { named: known.clientId };
    let authenticated: Client | undefined;
    try {
      // No early exit: every reading is checked, right or wrong.
      for (const { client, secret } of claims) {
        const right = await matches(clients, client, secret, derive);
        if (!right || client === undefined) continue;
        authenticated = client;
        if (client.secret.kind === 'scrypt') remembered.set(client, keyedDigest(secret));
      }
    } catch (error) {
      if (error instanceof DerivationQueueFull) return { client: BUSY, ...named };
      throw error;
    }
    return { client: authenticated ?? WRONG, ...named };
  }
}

async function matches(
  clients: ClientSet,
  client: Client | undefined,
  secret: string,
  derive: ScryptDerivation,
): Promise<boolean> {
  const stored = client?.secret;
  const digest = stored?.kind === 'sha256' ? stored.digest : NO_DIGEST;
  let right = timingSafeEqual(digest, sha256(secret));
  for (const cost of clients.costs) {
    const own = stored?.kind === 'scrypt' && sameCost(stored.hash.cost, cost) ? stored.hash : undefined;
    const { salt, hash }: Pick<ScryptHash, 'salt' | 'hash'> = own ?? { salt: NO_SALT, hash: NO_HASH };
    const derived = await derive(secret, salt, cost, hash.length);
    if (timingSafeEqual(hash, derived) && own !== undefined) right = true;
  }
  return right;
}

function sameCost(a: ScryptCost, b: ScryptCost): boolean {
  return a.ln === b.ln && a.r === b.r && a.p === b.p;
}
