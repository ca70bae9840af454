/** Reads a review: in its turn, within bounds of size and time. */

import type { IncomingMessage } from 'node:http';
import type { Clock } from '../clock.ts';
import { MAX_REVIEW_BYTES, type Reservation, type ReviewBudget } from './review-budget.ts';

/** The API server has the whole review at hand when it begins to send it. */
const UPLOAD_MS = 3000;

export type ReviewBody = ReceivedReview | { readonly status: 413 };

export interface ReceivedReview {
  readonly bytes: Buffer;
  /** The bytes are needed no more, and are gone; an answer is in their place: as a reservation says of it. */
  answered: Reservation['answered'];
}

/**
 * The body, or the status that says why not. Its room in `budget` is kept until it is answered, and that of the answer
 * until `signal` aborts, which is when the answer has left or the connection has ended.
 * @throws what the connection or `signal` failed with.
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

/** Without an announcement it may be as large as any. */
function announcedBytes({ headers }: IncomingMessage): number {
  return Number(headers['content-length'] ?? MAX_REVIEW_BYTES);
}

/** Into one buffer of the announced size, so that the room taken is the room reserved; undefined for more. */
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

/**
 * Gives their memory back now: room for the next review is taken at once, while a collection, which would find them unused, comes
 * when it comes.
 */
function forget({ buffer }: Buffer): void {
  (buffer as ArrayBuffer).transfer(0);
}
