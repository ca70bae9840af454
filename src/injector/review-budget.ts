/** Bounds the memory of reviews and answers, shared fairly among addresses. */

import type { Clock } from '../platform/time/clock.ts';

export interface ReviewBudget {
  /**
   * Resolves once there is room; rejects if the signal aborts first. The address that holds the least goes first, and none may hold
   * more than half. Without room, the address that holds the most loses its oldest upload or unread answer, if it holds more than
   * this one would.
   * @param bytes at most `MAX_REVIEW_BYTES`.
   * @param giveWay ends the review; called at most once, and not after `arrived`.
   */
  reserve(address: string, bytes: number, signal: AbortSignal, giveWay: () => void): Promise<Reservation>;
}

export interface Reservation {
  /** The whole review will be answered, whoever waits. */
  arrived(): void;
  /**
   * The answer's room replaces the review's. Without enough, the address that holds the most loses its oldest unread answers, if it
   * holds more than this one would. An answer is unread after a second, or at once if its address exceeds half. At most once.
   * @param giveWay ends the answer, whose room is then given back; called at most once, and not after `release`.
   * @returns false if the answer must be dropped; all room is then given back.
   */
  answered(bytes: number, giveWay: () => void): boolean;
  /** Repeated calls do no harm. */
  release(): void;
}

/** A pod is at most 1.5 MiB, etcd's limit. */
export const MAX_REVIEW_BYTES = 4 * 1024 * 1024;

/** Four of the largest. */
const TOTAL_BYTES = 16 * 1024 * 1024;

/** A live caller has read its answer by then. */
const READ_WITHIN_MS = 1000;

/** What the smallest review takes once decoded. */
const MIN_BYTES = 64 * 1024;

interface Claim {
  readonly address: string;
  readonly bytes: number;
}

interface Waiting extends Claim {
  readonly start: () => void;
}

interface Uploading extends Claim {
  readonly giveWay: () => void;
}

interface Unread {
  readonly address: string;
  readonly end: () => void;
}

export function createReviewBudget(clock: Pick<Clock, 'after'>): ReviewBudget {
  const held = new Map<string, number>();
  const waiting = new Set<Waiting>();
  const uploading = new Set<Uploading>();
  /** In the order in which they were late, or exceeded half. */
  const unread = new Set<Unread>();
  /** Asked to give way, and counted until their connections have ended. */
  const leaving = new Set<Claim>();
  let total = 0;

  const heldBy = (address: string): number => held.get(address) ?? 0;
  const leavingBytes = (address?: string): number =>
    [...leaving].reduce(
      (sum, one) => sum + (address === undefined || one.address === address ? one.bytes : 0),
      0,
    );
  const staysWith = (address: string): number => heldBy(address) - leavingBytes(address);

  function take(claim: Uploading): Reservation {
    const { address } = claim;
    uploading.add(claim);
    let kept = 0;
    function keep(bytes: number): void {
      const rest = heldBy(address) + bytes - kept;
      total += bytes - kept;
      kept = bytes;
      if (rest === 0) held.delete(address);
      else held.set(address, rest);
    }
    let answer: Unread | undefined;
    let cancelWait: (() => void) | undefined;
    function giveBack(): void {
      uploading.delete(claim);
      leaving.delete(claim);
      cancelWait?.();
      if (answer !== undefined) unread.delete(answer);
      keep(0);
    }
    function release(): void {
      giveBack();
      startNext();
    }
    keep(claim.bytes);
    return {
      arrived: () => void uploading.delete(claim),
      answered(bytes, giveWay) {
        // The connection has already ended.
        if (kept === 0) return false;
        const more = bytes - kept;
        if (more > 0 && !hasRoom(address, more)) {
          release();
          return false;
        }
        keep(bytes);
        const own: Unread = {
          address,
          end() {
            giveBack();
            giveWay();
          },
        };
        answer = own;
        if (heldBy(address) > TOTAL_BYTES / 2) {
          unread.add(own);
          startNext();
          return true;
        }
        cancelWait = clock.after(READ_WITHIN_MS, () => {
          unread.add(own);
          startNext();
        });
        startNext();
        return true;
      },
      release,
    };
  }

  function hasRoom(address: string, more: number): boolean {
    while (total + more > TOTAL_BYTES) {
      const most = oldestOfMost(unread);
      if (most === undefined || heldBy(most.address) <= heldBy(address) + more) return false;
      most.end();
    }
    return true;
  }

  function oldestOfMost<T extends { readonly address: string }>(candidates: Iterable<T>): T | undefined {
    let most: T | undefined;
    for (const one of candidates) {
      if (most === undefined || staysWith(one.address) > staysWith(most.address)) most = one;
    }
    return most;
  }

  function startNext(): void {
    for (;;) {
      const [next] = [...waiting]
        .filter(({ address, bytes }) => heldBy(address) + bytes <= TOTAL_BYTES / 2)
        .sort((a, b) => heldBy(a.address) + a.bytes - heldBy(b.address) - b.bytes);
      if (next === undefined) return;
      if (total + next.bytes > TOTAL_BYTES) {
        if (!makeRoomFor(next)) return;
        continue;
      }
      waiting.delete(next);
      next.start();
    }
  }

  /** An answer's room is freed at once, a review's only when its connection has ended. */
  function makeRoomFor({ address, bytes }: Claim): boolean {
    // Enough is being freed already.
    if (total - leavingBytes() + bytes <= TOTAL_BYTES) return false;
    const most = oldestOfMost<Uploading | Unread>([...unread, ...uploading]);
    if (most === undefined || staysWith(most.address) <= heldBy(address) + bytes) return false;
    if ('end' in most) {
      most.end();
      return true;
    }
    uploading.delete(most);
    leaving.add(most);
    most.giveWay();
    return false;
  }

  return {
    reserve(address, announced, signal, giveWay) {
      const bytes = Math.max(announced, MIN_BYTES);
      return new Promise((resolve, reject) => {
        if (signal.aborted) {
          reject(signal.reason);
          return;
        }
        const abort = (): void => {
          waiting.delete(entry);
          reject(signal.reason);
          startNext();
        };
        const entry: Waiting = {
          address,
          bytes,
          start() {
            signal.removeEventListener('abort', abort);
            resolve(take({ address, bytes, giveWay }));
          },
        };
        signal.addEventListener('abort', abort, { once: true });
        waiting.add(entry);
        startNext();
      });
    },
  };
}
