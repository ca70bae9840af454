import type { Instant } from '../../../platform/time/clock.ts';
import type { InterimResponses } from '../../http/messages.ts';
import type { BodyDecoder } from '../../http1/body-decoder.ts';
import type { ByteQueue } from '../../io/byte-queue.ts';
import type { Delivery, UpstreamUser } from '../../streams/contract.ts';
import type { TlsEnd } from '../close-notify.ts';

export interface Idle {
  readonly kind: 'idle';
  readonly since: Instant;
  readonly reusableForMs: number;
  /** Reading stopped during the last answer: the connection's end may have come unread. */
  readonly doubtful: boolean;
}

export interface Busy {
  readonly kind: 'busy';
  readonly user: UpstreamUser;
  readonly method: string;
  readonly reused: boolean;
  requestComplete: boolean;
  /** Informational answers count, too. */
  anyResponse: boolean;
  interims: InterimResponses | undefined;
  answer: ResponseInProgress | undefined;
  gatheredBytes: number;
}

/** Reading has stopped at an answer's head. */
interface Held {
  readonly kind: 'held';
  readonly busy: Busy;
  /** TLS delivers all that it deciphered, even on hold. */
  readonly bytes: ByteQueue;
  end: TlsEnd | undefined;
}

export type UpstreamState =
  | { readonly kind: 'connecting' | 'securing'; readonly user: UpstreamUser }
  | Idle
  /** Lent out; it is checked whether the upstream has closed it. */
  | { readonly kind: 'examined'; readonly user: UpstreamUser; readonly idle: Idle }
  /** Lent out; the request may be sent. `idle` is undefined if it is new. */
  | { readonly kind: 'lent'; readonly user: UpstreamUser; readonly idle: Idle | undefined }
  | Busy
  | Held
  /** The unwanted rest of an answer is read. */
  | { readonly kind: 'discarding'; readonly answer: ResponseInProgress; bytes: number }
  /** A 101 has come. */
  | { readonly kind: 'switching'; readonly user: UpstreamUser; readonly bytes: Buffer | undefined }
  | { readonly kind: 'taken-over' }
  | { readonly kind: 'given-up' };

export interface ResponseInProgress {
  readonly body: BodyDecoder;
  persistent: boolean;
  readonly reusableForMs: number;
  /** Reading stopped during it: the connection's end may have come unread. */
  wasHeld: boolean;
}

/**
 * @param byPeer false if a bound or rule of the sidecar ended it.
 * @param anyLeft whether the system took any of the request.
 */
export function deliveryOf(state: UpstreamState, byPeer: boolean, anyLeft: boolean): Delivery {
  if (state.kind === 'examined' || state.kind === 'lent') return 'unsent';
  if (state.kind !== 'busy' || !byPeer) return 'lost';
  // The system may refuse a write at once.
  if (!anyLeft) return 'unsent';
  return state.reused && !state.anyResponse ? 'unanswered' : 'lost';
}
