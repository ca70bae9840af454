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

/** The field value (`Bearer …`, RFC 6750 §2.1), or a token with its key. */
export type Authorization = string | BoundToken;

/** Each request that carries it needs a proof of its own (RFC 9449 §7). */
export interface BoundToken {
  /** The field value, `DPoP …`. */
  readonly value: string;
  /** Of the key (RFC 7638). */
  readonly thumbprint: string;
  /** The value of the field `DPoP`. @param nonce by default the last that the origin gave. */
  prove(request: ProvedRequest, nonce?: string): string;
  nonceGiven(origin: string, nonce: string): void;
  /** What became of a proof. */
  told(outcome: 'nonce_wanted' | 'refused'): void;
}

/** As the server sees it. */
export interface ProvedRequest {
  readonly method: string;
  /** `https://api.example.com`, in lower case, without the scheme's own port. */
  readonly origin: string;
  /** Without query and fragment. */
  readonly path: string;
}

export function isSameToken(one: Authorization | undefined, other: Authorization): boolean {
  if (typeof one !== 'object' || typeof other !== 'object') return one === other;
  return one.value === other.value && one.thumbprint === other.thumbprint;
}

export function fieldValueOf(authorization: Authorization): string {
  return typeof authorization === 'string' ? authorization : authorization.value;
}

/** Without the scheme. */
export function accessTokenIn(authorization: Authorization): string {
  const value = fieldValueOf(authorization);
  return value.slice(value.indexOf(' ') + 1);
}

export interface BearerSource {
  /** Undefined without a token that may be sent now. */
  current(): Authorization | undefined;

  /**
   * Waits for a grant, beginning one if need be.
   * @throws {TokenUnavailable} after the credential's wait timeout, or if nobody waits any more.
   */
  obtain(waiter?: TokenWaiter): Promise<Authorization>;

  /** After a 401 to `refused`. Resolves to another value worth one replay, or to undefined. Never rejects. */
  replace(refused: Authorization, waiter?: TokenWaiter): Promise<Authorization | undefined>;

  /** Called for each answer with `provesAcceptance`. */
  accepted(authorization: Authorization): void;

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
