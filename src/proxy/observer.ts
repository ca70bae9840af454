import type { RouteConfig } from '../config/config.ts';
import type { CountedErrorCode, ProxyErrorCode } from '../errors.ts';
import type { GrpcStatus } from '../grpc-status.ts';
import type { GrantTrace } from '../token/bearer-source.ts';
import type { Protocol } from './http/protocol.ts';
import type { TraceContext } from './http/trace-context.ts';
import type { IncomingRequest } from './streams/message.ts';
import type { PassedBytes } from './tunnel/passed-bytes.ts';

/** Counts as the status of a request whose app left before an answer: nginx's number, and no status of HTTP. */
export const CLIENT_CLOSED_REQUEST = 499;

export type ReplayResult = 'success' | 'failure';

/** What is counted of a request beside its answer. */
export type CountedRequest = Pick<IncomingRequest, 'method' | 'protocol'>;

/** What the data path tells of the upstream of one route. */
export interface UpstreamObserver {
  /** The head of an answer has come. @param durationMs since the request was sent, the last time it was. */
  upstreamAnswered(durationMs: number): void;
  /** A connection stands, over TCP alone or through a proxy. */
  connectionOpened(): void;
  /** A TLS handshake has succeeded. */
  connectionSecured(resumed: boolean): void;
  /** A file of certificates of the route is in use from now on. */
  certificatesInUse(file: 'caFile' | 'certFile', pem: string): void;
}

/** All that the data path tells of the requests of one route: what is counted of them comes from here alone. */
export interface RouteObserver extends UpstreamObserver {
  started(): void;
  /**
   * The end of a request that has `started`.
   * @param upstream the version of HTTP by which it left, if it did.
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
  /** Something that was answered with an error and could not be read as a request, or came on a connection too many. */
  turnedAway(code: ProxyErrorCode, status: number, protocol: Protocol): void;
  /** Beside its end as a request: the outcome of a gRPC call, where the app got one. */
  grpcEnded(status: GrpcStatus | undefined): void;
  error(code: CountedErrorCode): void;
  upstreamUnauthorized(): void;
  replayed(result: ReplayResult): void;
}

/** How a request that was followed has ended. */
export interface EndedRequest {
  /** That the app got; undefined where it left before an answer. */
  readonly status: number | undefined;
  /** That the app got, of a gRPC call. */
  readonly grpcStatus: GrpcStatus | undefined;
  readonly durationMs: number;
  /** The version of HTTP by which it left, if it did. */
  readonly upstreamProtocol: Protocol | undefined;
}

/** Follows one request to its end, where somebody wants to know more of it than is counted. */
export interface RequestFollower {
  /** As the app gave it, or made. */
  readonly requestId: string;
  /** That the request belongs to, if to any. */
  readonly trace: TraceContext | undefined;
  /** The id of that trace, where it is kept by whoever gets the spans. */
  readonly sampled: string | undefined;
  /** Counted by whoever passes them on. */
  readonly bytes: PassedBytes;
  /** It is known who asks. @param caller by name, where callers are told apart. */
  identified(caller: string): void;
  /** It is known where the request goes. */
  routed(route: RouteConfig): void;
  /** It waits for this grant; perhaps for another after that. */
  awaits(grant: GrantTrace): void;
  /**
   * It is sent, perhaps once more.
   * @param target as it is sent upstream, without a token.
   * @returns what to send in its place, so that the upstream knows it again.
   */
  sending(target: string): IncomingRequest;
  /** The head of an answer to the last sending. */
  answered(status: number): void;
  /** That answer is read, or nobody wants the rest. */
  answerEnded(): void;
  /** The last sending has failed. */
  attemptFailed(code: ProxyErrorCode): void;
  /** The proxy refuses the request, or could not complete it. */
  failed(code: ProxyErrorCode): void;
  ended(ended: EndedRequest): void;
}

/** Begins to follow a request whose head has come; undefined where nobody wants to know of it. */
export type Follow = (request: IncomingRequest) => RequestFollower | undefined;

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
