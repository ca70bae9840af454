import type { ProxyErrorCode, SidecarError } from '../../platform/errors.ts';
import type { Fields } from '../http/fields.ts';
import type { Protocol } from '../http/protocol.ts';
import type { RequestRecorder } from '../observer.ts';
import type { AppStream } from '../streams/app-stream.ts';
import type { AnswerBody, AnswerHead, IncomingRequest } from '../streams/message.ts';
import type { RequestBody } from './request-body.ts';

/** What is done for an admitted request: it is forwarded, or a tunnel is made. */
export interface RequestService {
  /** The request's body, on its way; undefined for a request without one. */
  readonly body: RequestBody | undefined;
  /** The HTTP version that the request was last sent with; undefined for an unsent request and for a tunnel. */
  readonly sentBy: Protocol | undefined;
  /** What is held of the request on its way, in bytes. */
  readonly heldBytes: number;
  /** @throws {SidecarError} */
  begin(): void;
  /** Flushes the request; an app that outpaces the upstream has to wait. */
  flushRequest(): void;
  /** The app takes more of the answer. */
  appReady(): void;
  /** Releases everything: the exchange has ended some other way. */
  release(): void;
}

/** The exchange as its service knows it. */
export interface ServedExchange {
  readonly stream: AppStream;
  readonly request: IncomingRequest;
  /** Unique to the caller; undefined where callers are not told apart. */
  readonly caller: string | undefined;
  /** When the request's head was complete, on the monotonic clock. */
  readonly startedAtMs: number;
  /** Whether it is a gRPC call, whose outcome is a status of its own. */
  readonly isGrpc: boolean;
  /** Undefined where the request is not followed. */
  readonly recorder: RequestRecorder | undefined;
  /** Whether the answer is complete, was cut, or has nobody left to go to. */
  readonly over: boolean;
  /** Whether the head of the final answer has been written. */
  readonly begun: boolean;
  /** As in `AppStream`, while the answer has not begun. */
  inform(head: AnswerHead): void;
  /** Begins the final answer, and passes its head on with the next flush. */
  beginAnswer(head: AnswerHead, body: AnswerBody): void;
  endAnswer(trailers: Fields): void;
  /** Answers with `error` in the client's terms; cuts an answer that has begun. */
  fail(error: SidecarError<ProxyErrorCode>): void;
  /** The id shared by the app, the log and the trace: the app's own, or a generated one. */
  identify(): string;
  /** Logs why the request was not served, or only in part. The line quotes nothing of its contents. */
  report(error: SidecarError<ProxyErrorCode>): void;
  /** The app's stream becomes a tunnel with an answer of `status`; it is answered once the tunnel closes. */
  beginTunnel(status: 101 | 200): void;
  /** Counts the request while its stream lives on. @param nowMs on the monotonic clock. */
  settle(nowMs: number): void;
}
