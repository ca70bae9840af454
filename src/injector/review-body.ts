/** Reads a review in its turn, within bounds of size and time. */

import type { IncomingMessage } from 'node:http';
import type { Clock } from '../platform/time/clock.ts';
import { MAX_REVIEW_BYTES, type Reservation, type ReviewBudget } from './review-budget.ts';

/** The API server has the whole review ready when it begins to send it. */
const UPLOAD_MS = 3000;

type ReviewBody = ReceivedReview | { readonly status: 413 };

interface ReceivedReview {
  readonly bytes: Buffer;
  /** Frees the bytes and keeps room for the answer instead: see `Reservation.answered`. */
  answered: Reservation['answered'];
}

/**
 * The body, or the status that says why not. Its room in `budget` is kept until it is answered, and the answer's until
 * `signal` aborts, when the answer has left or the connection has ended.
 * @throws the error of the connection or of `signal`.
 */
export async function readReviewBody(
  request: IncomingMessage,
  budget: ReviewBudget,
  clock: Clock,
  signal: AbortSignal,
): Promise<ReviewBody> {
  const announced = announcedBytes(request);
  if (announced > MAX_REVIEW_BYTES) return { status: 413 };
  const giveUp = (why: string) => (): void => void request.destroy(new Error(why));
  const { arrived, answered, release } = await budget.reserve(
    request.socket.remoteAddress as string,
    announced,
    signal,
    giveUp('another caller, who has less, needs the room'),
  );
  signal.addEventListener('abort', release, { once: true });
  if (signal.aborted) release();
  const cancel = clock.after(UPLOAD_MS, giveUp(`no whole review in ${UPLOAD_MS} ms`));
  try {
    const bytes = await collect(request, announced);
    if (bytes === undefined) {
      release();
      return { status: 413 };
    }
    return {
      bytes,
      answered(size, giveWayOfAnswer) {
        forget(bytes);
        return answered(size, giveWayOfAnswer);
      },
    };
  } finally {
    arrived();
    cancel();
  }
}

/** A body without a stated length may have the maximum. */
function announcedBytes({ headers }: IncomingMessage): number {
  return Number(headers['content-length'] ?? MAX_REVIEW_BYTES);
}

/** Into one buffer of the announced size, so that the memory used is the memory reserved; undefined for more. */
async function collect(request: IncomingMessage, announced: number): Promise<Buffer | undefined> {
  const bytes = Buffer.allocUnsafeSlow(announced);
  let length = 0;
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      if (length + chunk.length > announced) {
        forget(bytes);
        return undefined;
      }
      length += chunk.copy(bytes, length);
    }
  } catch (error) {
    forget(bytes);
    throw error;
  }
  return bytes.subarray(0, length);
}

/** Frees the memory now: the next review takes the room at once, while garbage collection may come much later. */
function forget({ buffer }: Buffer): void {
  (buffer as ArrayBuffer).transfer(0);
}
