import type { RouteConfig } from '../config/config.ts';
import type { CountedErrorCode, ProxyErrorCode } from '../platform/errors.ts';
import type { GrpcStatus } from '../platform/grpc-status.ts';
import type { GrantTrace } from '../token/bearer-source.ts';
import type { Protocol, TraceContext } from './http/messages.ts';
import type { IncomingRequest } from './streams/contract.ts';
import type { PassedBytes } from './tunnel/tunnel.ts';

/** Counted as the status of a request whose app left before an answer: nginx's number, not an HTTP status. */
export const CLIENT_CLOSED_REQUEST = 499;

export type ReplayResult = 'success' | 'failure';

/** What is counted of a request beside its answer. */
export type CountedRequest = Pick<IncomingRequest, 'method' | 'protocol'>;

/** What the data path reports about one route's upstream. */
export interface UpstreamObserver {
  /** The head of an answer has come. @param durationMs since the request was last sent. */
  upstreamAnswered(durationMs: number): void;
  /** A connection is open, over TCP alone or through a proxy. */
  connectionOpened(): void;
  /** A TLS handshake has succeeded. */
  connectionSecured(resumed: boolean): void;
  /** A file of certificates of the route is in use from now on. */
  certificatesInUse(file: 'caFile' | 'certFile', pem: string): void;
}

/** All that the data path reports about one route's requests: the only source of their counts. */
export interface RouteObserver extends UpstreamObserver {
  started(): void;
  /**
   * The end of a request that has `started`.
   * @param upstream the HTTP version that it was sent upstream with, if it was.
   * @param sampled the trace that shows where its time went, if one is kept.
   */
  ended(
    request: CountedRequest,
    status: number,
    durationMs: number,
    upstream: Protocol | undefined,
    sampled?: string,
  ): void;
  /** A request that was refused before it counted as in flight. */
  refused(request: CountedRequest, status: number, durationMs: number): void;
  /** Something answered with an error because it could not be read as a request, or came on a connection over the limit. */
  turnedAway(code: ProxyErrorCode, status: number, protocol: Protocol): void;
  /** The outcome of a gRPC call, if the app got one; reported beside its end as a request. */
  grpcEnded(status: GrpcStatus | undefined): void;
  error(code: CountedErrorCode): void;
  upstreamUnauthorized(): void;
  replayed(result: ReplayResult): void;
}

/** How a recorded request has ended. */
export interface EndedRequest {
  /** What the app got; undefined if it left before an answer. */
  readonly status: number | undefined;
  /** What the app got as the outcome of a gRPC call. */
  readonly grpcStatus: GrpcStatus | undefined;
  readonly durationMs: number;
  /** The HTTP version that it was sent upstream with, if it was. */
  readonly upstreamProtocol: Protocol | undefined;
}

/** Records one request to its end, in more detail than what is counted. */
export interface RequestRecorder {
  /** The app's own, or a generated one. */
  readonly requestId: string;
  /** The trace that the request belongs to, if any. */
  readonly trace: TraceContext | undefined;
  /** The id of that trace, if the receiver of the spans keeps it. */
  readonly sampled: string | undefined;
  /** Counted by whoever passes the bytes on. */
  readonly bytes: PassedBytes;
  /** The caller is known. @param caller its name, where callers are told apart. */
  identified(caller: string): void;
  /** The destination is known. */
  routed(route: RouteConfig): void;
  /** The request waits for this grant; perhaps for another after that. */
  awaits(grant: GrantTrace): void;
  /**
   * The request is sent, perhaps once more.
   * @param target as sent upstream, without a token.
   * @returns what to send in its place, marked so that the upstream can identify it.
   */
  sending(request: IncomingRequest, target: string): IncomingRequest;
  /** The head of an answer to the last attempt. */
  answered(status: number): void;
  /** That answer has been read, or the rest of it is not wanted. */
  answerEnded(): void;
  /** The last attempt has failed. */
  attemptFailed(code: ProxyErrorCode): void;
  /** The proxy refuses the request, or could not complete it. */
  failed(code: ProxyErrorCode): void;
  ended(ended: EndedRequest): void;
}

/** Starts the record of a request whose head has come; undefined where none is kept. */
export type RecordRequest = (request: IncomingRequest) => RequestRecorder | undefined;

/** What was answered with an error and could not be read as a request. */
export interface UnreadRequest {
  readonly requestId: string;
  readonly protocol: Protocol;
  readonly status: number;
  readonly grpcStatus: GrpcStatus | undefined;
  readonly error: ProxyErrorCode;
  readonly responseBytes: number;
}

export type LogUnread = (unread: UnreadRequest) => void;
