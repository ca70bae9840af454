import type { ProxyErrorCode, SidecarError } from '../../../platform/errors.ts';
import type { Fields } from '../../http/fields.ts';
import type { AnswerSection } from '../../http2/answer-section.ts';
import type { Broken } from '../../http2/stream-handler.ts';
import type { Member } from '../../io/members.ts';

/** What a connection tells a request on it. Buffers are valid until the call returns. */
export interface CarriedStream extends Member {
  /** On the monotonic clock: when `tooLate` is to be called. */
  readonly dueAtMs: number;
  /** The system has taken some of the request. */
  hasLeft(): void;
  /** An interim answer has come, or the final one. */
  answerCame(answer: AnswerSection, endStream: boolean, neverIndexed: readonly string[]): void;
  /** A piece of the answer, empty only with `endStream`. */
  dataCame(data: Buffer, endStream: boolean): void;
  /** Trailers, and with them the end. */
  trailersCame(fields: Fields): void;
  /** Everything that came in one piece has been passed. */
  pieceEnded(nowMs: number): void;
  /** The stream was broken off. */
  brokenOff(how: Broken): void;
  /** @param byPeer whether the upstream or the network ended it, rather than a bound or a rule of the sidecar. */
  connectionFailed(error: SidecarError<ProxyErrorCode>, byPeer: boolean): void;
  /** Sends one frame of what waits; says whether more may follow, or nothing could be sent. */
  sendWaiting(): 'stuck' | 'more' | 'done';
  tooLate(): void;
}
