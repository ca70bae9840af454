import type { ScryptDerivation } from './scrypt-hash.ts';

/** Thrown if the queue is full. The caller is asked to come back later. */
export class DerivationQueueFull extends Error {
  override readonly name = 'DerivationQueueFull';
}

interface DerivationQueueLimits {
  /** Derivations at a time; each takes a core and 128·N·r bytes. */
  readonly concurrent: number;
  /** Derivations waiting for their turn. */
  readonly waiting: number;
}

/** Who a derivation is for: turns rotate among the clients, and for each client among the requesting addresses. */
interface Asker {
  readonly clientId: string;
  readonly address: string;
}

export interface DerivationQueue {
  /** Rejects with `DerivationQueueFull` if there is no room, or if a waiter with fewer in line needs it. */
  derive(asker: Asker, ...work: Parameters<ScryptDerivation>): Promise<Buffer>;
  /** Derives now if nothing else is being derived; otherwise resolves to undefined. */
  deriveIfIdle(...work: Parameters<ScryptDerivation>): Promise<Buffer | undefined>;
}

interface Waiter {
  start(): void;
  turnAway(): void;
}

/** Waiters by client and address. Both maps are rings: the first entry has its turn next, then moves to the end. */
type Waiting = Map<string, Map<string, Waiter[]>>;

/**
 * Bounds the derivations that run and wait: wrong secrets cost the service, not the sender, so a flood of them must not
 * take all of its memory and cores, nor the turns of other clients.
 */
export function createDerivationQueue(
  derive: ScryptDerivation,
  limits: DerivationQueueLimits,
): DerivationQueue {
  const waiting: Waiting = new Map();
  let waiters = 0;
  let running = 0;

  async function run(work: Parameters<ScryptDerivation>): Promise<Buffer> {
    try {
      return await derive(...work);
    } finally {
      // A finished derivation hands its place over, so `running` does not change.
      const next = nextWaiter(waiting);
      if (next === undefined) running--;
      else next.start();
    }
  }

  async function waitForTurn(asker: Asker): Promise<void> {
    if (waiters >= limits.waiting && !makeRoom(waiting, asker)) throw full();
    const turn = Promise.withResolvers<void>();
    waiters++;
    addWaiter(waiting, asker, {
      start() {
        waiters--;
        turn.resolve();
      },
      turnAway() {
        waiters--;
        turn.reject(full());
      },
    });
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

function addWaiter(waiting: Waiting, { clientId, address }: Asker, waiter: Waiter): void {
  const addresses = waiting.get(clientId) ?? new Map<string, Waiter[]>();
  waiting.set(clientId, addresses);
  const waiters = addresses.get(address) ?? [];
  addresses.set(address, waiters);
  waiters.push(waiter);
}

function nextWaiter(waiting: Waiting): Waiter | undefined {
  for (const [clientId, addresses] of waiting) {
    waiting.delete(clientId);
    for (const [address, waiters] of addresses) {
      addresses.delete(address);
      const next = waiters.shift();
      if (waiters.length > 0) addresses.set(address, waiters);
      if (addresses.size > 0) waiting.set(clientId, addresses);
      return next;
    }
  }
  return undefined;
}

/**
 * Turns away the last waiter for the client with the most or, if no client has more than the asker's own, at its
 * address with the most: only if more wait there than will for the asker.
 */
function makeRoom(waiting: Waiting, { clientId, address }: Asker): boolean {
  const own = waiting.get(clientId) ?? new Map<string, Waiter[]>();
  const [, greediest = own] = largest(waiting, countOf) ?? [];
  const crowd = countOf(greediest) > countOf(own) + 1 ? greediest : own;
  const [place, waiters = []] = largest(crowd, ({ length }) => length) ?? [];
  if (place === undefined) return false;
  if (crowd === own && waiters.length <= (own.get(address)?.length ?? 0) + 1) return false;
  waiters.pop()?.turnAway();
  if (waiters.length === 0) crowd.delete(place);
  return true;
}

function countOf(addresses: ReadonlyMap<string, readonly Waiter[]>): number {
  let count = 0;
  for (const { length } of addresses.values()) count += length;
  return count;
}

function largest<Value>(
  entries: ReadonlyMap<string, Value>,
  size: (value: Value) => number,
): [string, Value] | undefined {
  let found: [string, Value] | undefined;
  for (const [key, value] of entries) {
    if (found === undefined || size(value) > size(found[1])) found = [key, value];
  }
  return found;
}
