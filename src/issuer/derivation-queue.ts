import type { ScryptDerivation } from './scrypt-hash.ts';

/** Thrown when the queue is full. Whoever asked is told to come back later. */
export class DerivationQueueFull extends Error {
  override readonly name = 'DerivationQueueFull';
}

export interface DerivationQueueLimits {
  /** Derivations at a time; each takes a core and 128·N·r bytes. */
  readonly concurrent: number;
  /** Derivations waiting for their turn. */
  readonly waiting: number;
}

/**
 * Lets only so many derivations run and wait: wrong secrets cost the service, not the sender, so a flood of them
 * must not take all of its memory and cores.
 * @returns a derivation that rejects with `DerivationQueueFull` beyond that.
 */
export function queueDerivations(derive: ScryptDerivation, limits: DerivationQueueLimits): ScryptDerivation {
  const waiting: (() => void)[] = [];
  let running = 0;

  async function turn(): Promise<void> {
    if (running < limits.concurrent) {
      running++;
      return;
    }
    if (waiting.length >= limits.waiting) throw new DerivationQueueFull('too many secrets wait to be hashed');
    // Whoever is done hands its place over, so `running` does not change.
    await new Promise<void>((resolve) => waiting.push(resolve));
  }

  return async (secret, salt, cost, bytes) => {
    await turn();
    try {
      return await derive(secret, salt, cost, bytes);
    } finally {
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}
