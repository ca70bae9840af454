import type { ProxyErrorCode, SidecarError } from '../../errors.ts';
import type { Fields } from '../http/fields.ts';
import type { Protocol } from '../http/protocol.ts';
import type { RequestFollower } from '../observer.ts';
import type { AppStream } from '../streams/app-stream.ts';
import type { AnswerBody, AnswerHead, IncomingRequest } from '../streams/message.ts';
import type { RequestBody } from './request-body.ts';

/** What is done for an admitted request: it is forwarded, or a tunnel is made. */
export interface RequestService {
  /** The request's body, on its way; undefined for a request without one. */
  readonly body: RequestBody | undefined;
  /** The version of HTTP by which the request was sent last; undefined where it was not, and for a tunnel. */
  readonly sentBy: Protocol | undefined;
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
  readonly stream: AppStream;
  readonly request: IncomingRequest;
  /** Tells who asks from every other; undefined where callers are not told apart. */
  readonly caller: string | undefined;
  /** When the request's head had come, on the monotonic clock. */
  readonly startedAtMs: number;
  /** Whether it is a gRPC call, whose outcome is a status of its own. */
  readonly isGrpc: boolean;
  /** Undefined where nobody follows the request. */
  readonly follower: RequestFollower | undefined;
  /** Whether there is nobody to answer any more, or nothing to add to the answer. */
  readonly over: boolean;
  /** Whether the head of the final answer has been written. */
  readonly begun: boolean;
  /** As in `AppStream`, while the answer has not begun. */
  inform(head: AnswerHead): void;
  /** Begins the final answer, and passes its head on with the next flush. */
  beginAnswer(head: AnswerHead, body: AnswerBody): void;
  endAnswer(trailers: Fields): void;
  /** Answers with `error` in the terms of who asked; if an answer has begun, cuts it. */
  fail(error: SidecarError<ProxyErrorCode>): void;
  /** By which the app, the log and the trace name the request alike: its own id, or one that is made. */
  identify(): string;
  /** Logs why the request was not served, or not to its end. Nothing of what it holds is in the line. */
  report(error: SidecarError<ProxyErrorCode>): void;
  /** The app's stream is to become a tunnel by an answer of `status`; it is answered when that closes. */
  beginTunnel(status: 101 | 200): void;
  /** Counts it, where its stream goes on without it. @param nowMs on the monotonic clock. */
  settle(nowMs: number): void;
}
