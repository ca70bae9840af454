/** How much of all reviews together may be in memory at a time, shared fairly among the addresses that send them. */

export interface ReviewBudget {
  /**
   * Resolves once there is room: whoever has least goes first, and none may have more than half of all. Where there is
   * no room, the oldest review that is still on its way gives way, of the address that has most, if that has more than
   * this one would have. Rejects when the signal aborts before there is room.
   * @param bytes at most `MAX_REVIEW_BYTES`.
   * @param giveWay ends the review; called at most once, and not after `arrived`.
   */
  reserve(address: string, bytes: number, signal: AbortSignal, giveWay: () => void): Promise<Reservation>;
}

export interface Reservation {
  /** The review is there as a whole: it is answered now, whoever waits. */
  arrived(): void;
  /**
   * The review is forgotten, and its answer of so many bytes waits to be read: that much is kept of the room, and the
   * rest given back. At most once.
   */
  answered(bytes: number): void;
  /** Gives the bytes back; more than once does no harm. */
  release(): void;
}

/** A pod is at most 1.5 MiB, what etcd takes; a review holds it once, with some kilobytes around it. */
export const MAX_REVIEW_BYTES = 4 * 1024 * 1024;

/** Four of the largest, or as many of the usual as there are connections. */
const TOTAL_BYTES = 16 * 1024 * 1024;

/** However small a review is, its answer may be as large as this. */
const LEAST_BYTES = 64 * 1024;

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

export function createReviewBudget(): ReviewBudget {
  const held = new Map<string, number>();
  const waiting = new Set<Waiting>();
  /** In the order of their beginning. */
  const uploading = new Set<Uploading>();
  let total = 0;

  const heldBy = (address: string): number => held.get(address) ?? 0;

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
    keep(claim.bytes);
    return {
      arrived: () => void uploading.delete(claim),
      answered(bytes) {
        keep(Math.min(bytes, kept));
        startNext();
      },
      release() {
        uploading.delete(claim);
        keep(0);
        startNext();
      },
    };
  }

  function startNext(): void {
    for (;;) {
      const [next] = [...waiting]
        .filter(({ address, bytes }) => heldBy(address) + bytes <= TOTAL_BYTES / 2)
        .sort((a, b) => heldBy(a.address) + a.bytes - heldBy(b.address) - b.bytes);
      if (next === undefined) return;
      if (total + next.bytes > TOTAL_BYTES) {
        makeRoomFor(next);
        return;
      }
      waiting.delete(next);
      next.start();
    }
  }

  /** What gives way releases its bytes when its connection has ended, and the next one starts then. */
  function makeRoomFor({ address, bytes }: Claim): void {
    const [most] = [...uploading].sort((a, b) => heldBy(b.address) - heldBy(a.address));
    if (most === undefined || heldBy(most.address) <= heldBy(address) + bytes) return;
    uploading.delete(most);
    most.giveWay();
  }

  return {
    reserve(address, announced, signal, giveWay) {
      const bytes = Math.max(announced, LEAST_BYTES);
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
