import { SidecarError } from '../platform/errors.ts';
import { GRPC_STATUS, type GrpcStatus } from '../platform/grpc-status.ts';

export interface GrantTrace {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  readonly sampled: boolean;
}

export type AwaitsGrant = (grant: GrantTrace) => void;

export interface TokenWaiter {
  readonly awaits?: AwaitsGrant | undefined;
  /** Aborted once the request has gone; its wait then rejects. */
  readonly gone?: AbortSignal | undefined;
}

export interface BearerSource {
  /** The field value (`Bearer …`, RFC 6750 §2.1), or undefined without a token that may be sent now. */
  current(): string | undefined;

  /**
   * Waits for a grant, beginning one if need be.
   * @throws {TokenUnavailable} after the credential's wait timeout, or if nobody waits any more.
   */
  obtain(waiter?: TokenWaiter): Promise<string>;

  /** After a 401 to `refused`. Resolves to another value worth one replay, or to undefined. Never rejects. */
  replace(refused: string, waiter?: TokenWaiter): Promise<string | undefined>;

  /** Called for each answer with `provesAcceptance`. */
  accepted(authorization: string): void;

  /**
   * For one request whose own token, `subject`, is exchanged.
   * @param caller the verified identity by which requests take turns.
   */
  readonly bySubject?: (subject: string, caller?: string) => BearerSource;
}

export interface TokenProvider {
  /** Each upstream is remembered apart, so that one that refuses everything delays no other's renewals. */
  forUpstream(upstream: string): BearerSource;
}

/** The proxy answers 503 with `Retry-After`. */
export class TokenUnavailable extends SidecarError<'token_unavailable'> {
  /** In whole seconds (RFC 9110 §10.2.3), at least 1. */
  readonly retryAfterSeconds: number;

  constructor(message: string, retryAfterMs: number) {
    super('token_unavailable', message);
    this.retryAfterSeconds = Math.max(1, Math.ceil(retryAfterMs / 1000));
  }
}

/** Client errors that are often answered before the token was checked. */
const UNPROVEN: ReadonlySet<number> = new Set([400, 401, 407, 408, 413, 414, 421, 425, 429, 431]);

/** Whether a final status shows that the upstream took the token. A failing server shows nothing. */
export function provesAcceptance(status: number): boolean {
  return status < 400 || (status < 500 && !UNPROVEN.has(status));
}

/** gRPC statuses that only an authenticated caller gets. */
const GRPC_PROVEN: ReadonlySet<GrpcStatus> = new Set([
  GRPC_STATUS.OK,
  GRPC_STATUS.NOT_FOUND,
  GRPC_STATUS.ALREADY_EXISTS,
  GRPC_STATUS.PERMISSION_DENIED,
  GRPC_STATUS.FAILED_PRECONDITION,
  GRPC_STATUS.ABORTED,
  GRPC_STATUS.OUT_OF_RANGE,
]);

export function grpcProvesAcceptance(status: GrpcStatus | undefined): boolean {
  return status !== undefined && GRPC_PROVEN.has(status);
}
