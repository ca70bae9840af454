import type { RouteConfig } from '../config/config.ts';
import type { CountedErrorCode, ProxyErrorCode } from '../platform/errors.ts';
import type { GrpcStatus } from '../platform/grpc-status.ts';
import type { GrantTrace } from '../token/bearer-source.ts';
import type { Protocol, TraceContext } from './http/messages.ts';
import type { IncomingRequest } from './streams/contract.ts';
import type { PassedBytes } from './tunnel/tunnel.ts';

/** The app left before an answer: nginx's number, not an HTTP status. */
export const CLIENT_CLOSED_REQUEST = 499;

export type ReplayResult = 'success' | 'failure';

export type CountedRequest = Pick<IncomingRequest, 'method' | 'protocol'>;

export interface UpstreamObserver {
  /** @param durationMs since the request was last sent. */
  upstreamAnswered(durationMs: number): void;
  /** Before TLS; perhaps through a proxy. */
  connectionOpened(): void;
  connectionSecured(resumed: boolean): void;
  /** From now on. */
  certificatesInUse(file: 'caFile' | 'certFile', pem: string): void;
}

/** The only source of a route's counts. */
export interface RouteObserver extends UpstreamObserver {
  started(): void;
  /**
   * For a request that has `started`.
   * @param upstream undefined if unsent.
   * @param sampled the id of a kept trace.
   */
  ended(
    request: CountedRequest,
    status: number,
    durationMs: number,
    upstream: Protocol | undefined,
    sampled?: string,
  ): void;
  /** For a request that was not yet in flight. */
  refused(request: CountedRequest, status: number, durationMs: number): void;
  /** For what could not be read as a request, or exceeded the connection limit. */
  turnedAway(code: ProxyErrorCode, status: number, protocol: Protocol): void;
  /** Reported beside the end of the request. */
  grpcEnded(status: GrpcStatus | undefined): void;
  error(code: CountedErrorCode): void;
  upstreamUnauthorized(): void;
  replayed(result: ReplayResult): void;
}

export interface EndedRequest {
  /** Undefined if the app left first. */
  readonly status: number | undefined;
  readonly grpcStatus: GrpcStatus | undefined;
  readonly durationMs: number;
  /** Undefined if unsent. */
  readonly upstreamProtocol: Protocol | undefined;
}

export interface RequestRecorder {
  /** The app's own, or a generated one. */
  readonly requestId: string;
  readonly trace: TraceContext | undefined;
  /** The trace's id, if the receiver of spans keeps it. */
  readonly sampled: string | undefined;
  readonly bytes: PassedBytes;
  /** @param caller its name. */
  identified(caller: string): void;
  routed(route: RouteConfig): void;
  /** Perhaps for several grants, one after another. */
  awaits(grant: GrantTrace): void;
  /**
   * Perhaps called again.
   * @param target as sent upstream, without a token.
   * @returns what to send instead, with ids.
   */
  sending(request: IncomingRequest, target: string): IncomingRequest;
  /** Of the last attempt. */
  onResponse(status: number): void;
  /** The answer was read, or its rest is unwanted. */
  onResponseEnd(): void;
  attemptFailed(code: ProxyErrorCode): void;
  failed(code: ProxyErrorCode): void;
  ended(ended: EndedRequest): void;
}

/** Undefined where none is kept. */
export type RecordRequest = (request: IncomingRequest) => RequestRecorder | undefined;

export interface UnreadRequest {
  readonly requestId: string;
  readonly protocol: Protocol;
  readonly status: number;
  readonly grpcStatus: GrpcStatus | undefined;
  readonly error: ProxyErrorCode;
  readonly responseBytes: number;
}

export type LogUnread = (unread: UnreadRequest) => void;
