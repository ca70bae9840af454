/** How far an HTTP/1.1 connection to an upstream is, and what that says of its request. */

import type { Instant } from '../../../platform/time/clock.ts';
import type { InterimAnswers } from '../../http/messages.ts';
import type { BodyDecoder } from '../../http1/body-decoder.ts';
import type { ByteQueue } from '../../io/byte-queue.ts';
import type { Delivery, UpstreamUser } from '../../streams/contract.ts';
import type { StreamEnd } from '../close-notify.ts';

export interface Idle {
  readonly kind: 'idle';
  readonly since: Instant;
  readonly reusableForMs: number;
  /** Whether reading stopped during the last answer: the connection's end may have come unread. */
  readonly doubtful: boolean;
}

export interface Busy {
  readonly kind: 'busy';
  readonly user: UpstreamUser;
  readonly method: string;
  /** Whether the connection has carried requests before. */
  readonly reused: boolean;
  requestWhole: boolean;
  /** Whether a byte of an answer has come, informational ones included. */
  anyAnswer: boolean;
  interims: InterimAnswers | undefined;
  answer: AnswerInProgress | undefined;
  /** Bytes that have come and are not flushed yet. */
  gatheredBytes: number;
}

/** Reading has stopped at an answer's head; what still comes is kept. */
interface Held {
  readonly kind: 'held';
  readonly busy: Busy;
  /** TLS delivers everything deciphered from one read, even on hold. */
  readonly bytes: ByteQueue;
  end: StreamEnd | undefined;
}

export type UpstreamState =
  | { readonly kind: 'connecting' | 'securing'; readonly user: UpstreamUser }
  | Idle
  /** Lent out; first it is checked whether the upstream has closed it. */
  | { readonly kind: 'examined'; readonly user: UpstreamUser; readonly idle: Idle }
  /** Lent out; the request may be sent. `idle` is its former state, unless it is new. */
  | { readonly kind: 'lent'; readonly user: UpstreamUser; readonly idle: Idle | undefined }
  | Busy
  | Held
  /** The rest of the answer is not wanted: it is read if its end is near. */
  | { readonly kind: 'discarding'; readonly answer: AnswerInProgress; bytes: number }
  /** These bytes came with a 101. */
  | { readonly kind: 'switching'; readonly user: UpstreamUser; readonly bytes: Buffer | undefined }
  | { readonly kind: 'taken-over' }
  | { readonly kind: 'given-up' };

/** The final answer whose head has been passed. */
export interface AnswerInProgress {
  readonly body: BodyDecoder;
  /** Whether another request may follow it. */
  persistent: boolean;
  readonly reusableForMs: number;
  /** Whether reading stopped during it: the connection's end may have come unread. */
  wasHeld: boolean;
}

/**
 * What became of the request of a connection that failed in this state.
 * @param byPeer false if a bound or rule of the sidecar ended it.
 * @param anyLeft whether the system took any of the request.
 */
export function deliveryOf(state: UpstreamState, byPeer: boolean, anyLeft: boolean): Delivery {
  if (state.kind === 'examined' || state.kind === 'lent') return 'unsent';
  if (state.kind !== 'busy' || !byPeer) return 'lost';
  // The system may refuse a write at once.
  if (!anyLeft) return 'unsent';
  return state.reused && !state.anyAnswer ? 'unanswered' : 'lost';
}
