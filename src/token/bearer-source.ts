import { GRPC_STATUS, type GrpcStatus } from '../grpc-status.ts';

/** By which a span of a request is linked to that of a grant. */
export interface GrantTrace {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  readonly sampled: boolean;
}

/** Is told of each grant that a request waits for, where grants are traced. */
export type AwaitsGrant = (grant: GrantTrace) => void;

/** One request that waits for a token. */
export interface TokenWaiter {
  readonly awaits?: AwaitsGrant | undefined;
  /** Aborted once the request has gone: nothing is held for it any more, and what it waits for rejects. */
  readonly gone?: AbortSignal | undefined;
}

/**
 * All that a data path needs to know of tokens: the Authorization value for a credential, now, or a promise of it.
 */
export interface BearerSource {
  /**
   * The Authorization field value (`Bearer …`, RFC 6750 §2.1) of a token that may be sent now; undefined when none
   * is held or the held one has expired. Synchronous: it is on the path of every request.
   */
  current(): string | undefined;

  /**
   * Waits for the grant in flight (or causes one) and resolves to its Authorization value.
   * @throws {TokenUnavailable} when no token is to be had within the credential's wait timeout, or nobody waits any more.
   */
  obtain(waiter?: TokenWaiter): Promise<string>;

  /**
   * Says that the upstream answered 401 to `refused`, and resolves to another Authorization value worth one replay,
   * or to undefined when there is none: renewal failed, or renewing again so soon would only load the provider.
   * Never rejects.
   */
  replace(refused: string, waiter?: TokenWaiter): Promise<string | undefined>;

  /**
   * Says that the upstream's answer shows that it took `authorization`: see `provesAcceptance`. For every such answer:
   * one comparison, unless it is the first for this value.
   */
  accepted(authorization: string): void;

  /**
   * The source for one request that brings this token, where it is exchanged; absent where tokens are the same for all.
   * @param caller by whose verified identity requests take turns, where callers are told apart.
   */
  readonly bySubject?: (subject: string, caller?: string) => BearerSource;
}

/** Where a data path gets the bearer sources of one credential from. */
export interface BearerSupply {
  /**
   * The source for one upstream. What an upstream accepts and refuses is remembered under its name, so that one that
   * refuses everything does not slow the cure of another.
   */
  forUpstream(upstream: string): BearerSource;
}

/** Client errors that are often answered before anybody has looked at the token. */
const UNPROVEN: ReadonlySet<number> = new Set([400, 401, 407, 408, 413, 414, 421, 425, 429, 431]);

/** Whether a final status shows that the upstream took the token it came with. A failing server shows nothing. */
export function provesAcceptance(status: number): boolean {
  return status < 400 || (status < 500 && !UNPROVEN.has(status));
}

/** Of gRPC's statuses those that are told to a caller who has been let in, or was known and not let in. */
const GRPC_PROVEN: ReadonlySet<GrpcStatus> = new Set([
  GRPC_STATUS.OK,
  GRPC_STATUS.NOT_FOUND,
  GRPC_STATUS.ALREADY_EXISTS,
  GRPC_STATUS.PERMISSION_DENIED,
  GRPC_STATUS.FAILED_PRECONDITION,
  GRPC_STATUS.ABORTED,
  GRPC_STATUS.OUT_OF_RANGE,
]);

/** The same of the status that ends a gRPC call, whatever the HTTP status. */
export function grpcProvesAcceptance(status: GrpcStatus | undefined): boolean {
  return status !== undefined && GRPC_PROVEN.has(status);
}
