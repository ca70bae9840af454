import type { ProxyErrorCode, SidecarError } from '../../errors.ts';
import type { BodyFraming } from '../http1/body-framing.ts';
import type { ResponseHead } from '../http1/response-head.ts';

/**
 * What became of a request whose connection failed:
 * - `unsent`: nothing of it has left this machine;
 * - `unanswered`: the connection had been idle, and ended without a byte of an answer: most likely closed meanwhile;
 * - `lost`: anything else. The upstream may have acted on it.
 */
export type RequestFate = 'unsent' | 'unanswered' | 'lost';

/** Who has sent a request on a connection. Called until the answer has ended or failed, or the user abandons it. */
export interface UpstreamUser {
  /** The connection stands: the request may be sent. */
  connected(): void;
  /** An informational answer other than 101. */
  informed(head: ResponseHead): void;
  /** The head of the final answer. */
  answered(head: ResponseHead, framing: BodyFraming): void;
  /** A 101: the user must take the connection over. @throws {SidecarError} if it did not ask for it. */
  switched(head: ResponseHead): void;
  answerData(slice: Buffer): void;
  answerEnded(trailers: readonly string[]): void;
  /** All that came in one piece has been passed. */
  flushAnswer(): void;
  /** The connection takes more of the request. */
  upstreamReady(): void;
  /** Nothing has moved for as long as the route allows. */
  stalled(): void;
  upstreamFailed(error: SidecarError<ProxyErrorCode>, fate: RequestFate): void;
}
