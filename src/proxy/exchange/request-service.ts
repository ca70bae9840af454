import type { ProxyErrorCode, SidecarError } from '../../errors.ts';
import type { Fields } from '../http/fields.ts';
import type { BodyFraming } from '../http1/body-framing.ts';
import type { RequestHead } from '../http1/request-head.ts';
import type { ResponseHead } from '../http1/response-head.ts';
import type { AppSide } from './app-side.ts';
import type { RequestBody } from './request-body.ts';

/** What is done for an admitted request: it is forwarded, or a tunnel is made. */
export interface RequestService {
  /** The request's body, on its way; undefined for a request without one. */
  readonly body: RequestBody | undefined;
  /** @throws {SidecarError} */
  begin(): void;
  /** Sends what was written of the request; an app that is faster than the upstream has to wait. */
  flushRequest(): void;
  /** The app takes more of the answer. */
  appReady(): void;
  /** Lets go of everything: the exchange has ended otherwise. */
  release(): void;
}

/** The exchange as its service knows it. */
export interface ServedExchange {
  readonly connection: AppSide;
  readonly head: RequestHead;
  /** When the request's head had come, on the monotonic clock. */
  readonly startedAtMs: number;
  /** Whether there is nobody to answer any more, or nothing to add to the answer. */
  readonly over: boolean;
  /** Whether the head of the final answer has been written. */
  readonly begun: boolean;
  /** Whether the app has sent its request whole. */
  readonly requestWhole: boolean;
  /** Whether the client waits for 100 before it sends the body. */
  readonly awaitsContinue: boolean;
  /** Passes an informational answer on. */
  inform(head: ResponseHead): void;
  /** Begins the final answer, and passes its head on with the next flush. */
  beginAnswer(head: ResponseHead, framing: BodyFraming): void;
  answerData(slice: Buffer): void;
  /** Says whether the app keeps up; if not, `RequestService.appReady` is called once it does. */
  flushAnswer(): boolean;
  endAnswer(trailers: Fields): void;
  /** Answers with the problem that `error` is; if an answer has begun, cuts it. */
  fail(error: SidecarError<ProxyErrorCode>): void;
  /** Ends the exchange without a proper end of the answer. */
  cut(): void;
  /** The connection has become a tunnel by an answer of `status`. */
  becomeTunnel(status: 101 | 200): void;
}
