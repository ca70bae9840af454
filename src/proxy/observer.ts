import type { CountedErrorCode, ProxyErrorCode } from '../errors.ts';
import type { GrpcStatus } from '../grpc-status.ts';
import type { Protocol } from './http/protocol.ts';
import type { IncomingRequest } from './streams/message.ts';

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
   */
  ended(request: CountedRequest, status: number, durationMs: number, upstream: Protocol | undefined): void;
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
