import { SidecarError } from '../platform/errors.ts';
import { GRPC_STATUS, type GrpcStatus } from '../platform/grpc-status.ts';

/** Links the span of a request to that of a grant. */
export interface GrantTrace {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  readonly sampled: boolean;
}

/** Called with each grant that a request waits for, where grants are traced. */
export type AwaitsGrant = (grant: GrantTrace) => void;

/** One request that waits for a token. */
export interface TokenWaiter {
  readonly awaits?: AwaitsGrant | undefined;
  /** Aborted once the request has gone: nothing is held for it any more, and its wait rejects. */
  readonly gone?: AbortSignal | undefined;
}

/** All that a data path needs to know of tokens: a credential's Authorization value, now or as a promise. */
export interface BearerSource {
  /**
   * The Authorization field value (`Bearer …`, RFC 6750 §2.1) of a token that may be sent now; undefined when none
   * is held or the held one has expired. Synchronous: it is on the path of every request.
   */
  current(): string | undefined;

  /**
   * Waits for the grant in flight, starting one if need be, and resolves to its Authorization value.
   * @throws {TokenUnavailable} if no token comes within the credential's wait timeout, or nobody waits any more.
   */
  obtain(waiter?: TokenWaiter): Promise<string>;

  /**
   * Reports that the upstream answered 401 to `refused`, and resolves to another Authorization value worth one replay,
   * or to undefined if there is none: renewal failed, or renewing again so soon would only load the provider. Never
   * rejects.
   */
  replace(refused: string, waiter?: TokenWaiter): Promise<string | undefined>;

  /**
   * Reports an answer that shows that the upstream took `authorization`: see `provesAcceptance`. Called for every such
   * answer; it costs one comparison, unless it is the first for this value.
   */
  accepted(authorization: string): void;

  /**
   * The source for one request whose own token, `subject`, is exchanged; absent where all requests share a token.
   * @param caller the verified identity by which requests take turns, where callers are told apart.
   */
  readonly bySubject?: (subject: string, caller?: string) => BearerSource;
}

/** Where a data path gets one credential's bearer sources. */
export interface BearerSupply {
  /**
   * The source for one upstream. What an upstream accepts and refuses is remembered under its name, so that an upstream
   * that refuses everything does not delay renewals for another.
   */
  forUpstream(upstream: string): BearerSource;
}

/** No token, no request: the proxy answers 503 with `Retry-After`. */
export class TokenUnavailable extends SidecarError<'token_unavailable'> {
  /** When asking again may help, in whole seconds (RFC 9110 §10.2.3); at least 1. */
  readonly retryAfterSeconds: number;

  constructor(message: string, retryAfterMs: number) {
    super('token_unavailable', message);
    this.retryAfterSeconds = Math.max(1, Math.ceil(retryAfterMs / 1000));
  }
}

/** Client errors that are often answered before anybody has checked the token. */
const UNPROVEN: ReadonlySet<number> = new Set([400, 401, 407, 408, 413, 414, 421, 425, 429, 431]);

/** Whether a final status shows that the upstream took the request's token. A failing server shows nothing. */
export function provesAcceptance(status: number): boolean {
  return status < 400 || (status < 500 && !UNPROVEN.has(status));
}

/** gRPC statuses that only an authenticated caller gets, be it authorized or not. */
const GRPC_PROVEN: ReadonlySet<GrpcStatus> = new Set([
  GRPC_STATUS.OK,
  GRPC_STATUS.NOT_FOUND,
  GRPC_STATUS.ALREADY_EXISTS,
  GRPC_STATUS.PERMISSION_DENIED,
  GRPC_STATUS.FAILED_PRECONDITION,
  GRPC_STATUS.ABORTED,
  GRPC_STATUS.OUT_OF_RANGE,
]);

/** The same for the status that ends a gRPC call, whatever the HTTP status. */
export function grpcProvesAcceptance(status: GrpcStatus | undefined): boolean {
  return status !== undefined && GRPC_PROVEN.has(status);
}
