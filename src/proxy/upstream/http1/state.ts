/** How far one HTTP/1.1 connection to an upstream is, and what that says of the request on it. */

import type { Instant } from '../../../platform/time/clock.ts';
import type { InterimAnswers } from '../../http/messages.ts';
import type { BodyDecoder } from '../../http1/body-decoder.ts';
import type { ByteQueue } from '../../io/byte-queue.ts';
import type { Delivery, UpstreamUser } from '../../streams/contract.ts';
import type { StreamEnd } from '../close-notify.ts';

/** Carries no request, and may be lent out. */
export interface Idle {
  readonly kind: 'idle';
  readonly since: Instant;
  readonly reusableForMs: number;
  /** Whether reading stopped amid the last answer: the end of the connection may have come unread. */
  readonly doubtful: boolean;
}

/** A request is being sent, or its answer read. */
export interface Busy {
  readonly kind: 'busy';
  readonly user: UpstreamUser;
  readonly method: string;
  /** Whether the connection has carried requests before this one. */
  readonly reused: boolean;
  requestWhole: boolean;
  /** Whether a byte of an answer has come, an informational one included. */
  anyAnswer: boolean;
  /** From the first one on. */
  interims: InterimAnswers | undefined;
  answer: AnswerInProgress | undefined;
  /** Bytes that have come and are not flushed yet. */
  gatheredBytes: number;
}

/** Reading has stopped at the head of an answer; what still comes, and how it ends, is kept until reading goes on. */
interface Held {
  readonly kind: 'held';
  readonly busy: Busy;
  /** TLS delivers everything deciphered from one read, on hold or not, in as many pieces as there were records. */
  readonly bytes: ByteQueue;
  end: StreamEnd | undefined;
}

/** How far one connection to an upstream is. */
export type UpstreamState =
  /** The TCP connection, then the TLS session, is being made. */
  | { readonly kind: 'connecting' | 'securing'; readonly user: UpstreamUser }
  | Idle
  /** Lent out; first it is checked whether the upstream has closed meanwhile. */
  | { readonly kind: 'examined'; readonly user: UpstreamUser; readonly idle: Idle }
  /** Lent out; the request may be sent. `idle` is what it was before, unless it is new. */
  | { readonly kind: 'lent'; readonly user: UpstreamUser; readonly idle: Idle | undefined }
  | Busy
  | Held
  /** The rest of the answer is not wanted: it is read to its end if that is near. */
  | { readonly kind: 'discarding'; readonly answer: AnswerInProgress; bytes: number }
  /** A 101 has come, and these bytes with it. */
  | { readonly kind: 'switching'; readonly user: UpstreamUser; readonly bytes: Buffer | undefined }
  /** Given to a tunnel. */
  | { readonly kind: 'taken-over' }
  | { readonly kind: 'given-up' };

/** The final answer whose head has been passed. */
export interface AnswerInProgress {
  readonly body: BodyDecoder;
  /** Whether another request may follow it. */
  persistent: boolean;
  readonly reusableForMs: number;
  /** Whether reading stopped amid it: the end of the connection may have come unread. */
  wasHeld: boolean;
}

/**
 * What became of the request of a connection that failed in this state.
 * @param byPeer whether the upstream or the network ended it, rather than a bound or a rule of the sidecar.
 * @param anyLeft whether the system took any of the request.
 */
export function deliveryOf(state: UpstreamState, byPeer: boolean, anyLeft: boolean): Delivery {
  if (state.kind === 'examined' || state.kind === 'lent') return 'unsent';
  if (state.kind !== 'busy' || !byPeer) return 'lost';
  // Nothing has left if the system refused the write at once.
  if (!anyLeft) return 'unsent';
  return state.reused && !state.anyAnswer ? 'unanswered' : 'lost';
}
