/**
 * DPoP proofs that were accepted, so that none is accepted twice (RFC 9449 §11.1).
 *
 * An entry is of a key and a `jti`, and belongs to the client that sent it: only who has authenticated can make one. It
 * ends once its proof is refused for its age. If there are too many, the oldest of the client with most gives way to that
 * of a client with fewer, and a client with most is refused. Whoever floods is harmed thus, and no one else: a proof that
 * is forgotten early could be used again only by somebody with its client's secret, for a token that its key must prove.
 */

import { FairRing } from '../platform/limits/fair-queue.ts';
import { sha256 } from './clients.ts';

interface UsedProof {
  readonly client: string;
  readonly key: string;
  readonly untilMs: number;
}

/** In 7 MB. They last for 468 tokens a second, with nonces for 273. */
export const MAX_USED_PROOFS = 32_768;

export class UsedProofs {
  readonly #lifetimeMs: number;
  readonly #max: number;
  /** The oldest first. */
  readonly #all = new Map<string, UsedProof>();
  readonly #ofClients = new FairRing<UsedProof>();

  /** @param lifetimeMs how long a proof can be accepted. */
  constructor(lifetimeMs: number, max = MAX_USED_PROOFS) {
    this.#lifetimeMs = lifetimeMs;
    this.#max = max;
  }

  get size(): number {
    return this.#all.size;
  }

  /** @param nowMs monotonic. */
  use(
    client: string,
    thumbprint: string,
    tokenId: string,
    nowMs: number,
  ): 'used_now' | 'used_before' | 'full' {
    this.#dropEnded(nowMs);
    // Of a length that the caller does not choose.
    const key = sha256(`${thumbprint} ${tokenId}`).toString('base64');
    if (this.#all.has(key)) return 'used_before';
    if (this.#all.size >= this.#max && !this.#makesRoomFor(client)) return 'full';
    const proof = { client, key, untilMs: nowMs + this.#lifetimeMs };
    this.#all.set(key, proof);
    this.#ofClients.add(client, proof);
    return 'used_now';
  }

  #dropEnded(nowMs: number): void {
    for (const proof of this.#all.values()) {
      if (proof.untilMs >= nowMs) break;
      this.#drop(proof);
    }
  }

  #makesRoomFor(client: string): boolean {
    const most = this.#ofClients.most();
    // With one more they would take places from each other in turn.
    if (most.size <= this.#ofClients.sizeOf(client) + 1) return false;
    const [oldest] = most;
    this.#drop(oldest as UsedProof);
    return true;
  }

  #drop(proof: UsedProof): void {
    this.#all.delete(proof.key);
    this.#ofClients.remove(proof.client, proof);
  }
}
