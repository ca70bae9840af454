import type { RouteConfig } from '../config/config.ts';
import {
  type CountedErrorCode,
  ERRORS,
  messageOf,
  type ProxyErrorCode,
  SidecarError,
} from '../platform/errors.ts';
import type { GrpcStatus } from '../platform/grpc-status.ts';
import type { Logger } from '../platform/log/logger.ts';
import type { RefusedProof } from '../token/dpop/request-proof.ts';

/** An unforeseen error shows none of its details. */
export function asProxyError(error: unknown): SidecarError<ProxyErrorCode> {
  if (error instanceof SidecarError && 'status' in ERRORS[error.code as keyof typeof ERRORS]) {
    return error as SidecarError<ProxyErrorCode>;
  }
  return new SidecarError('internal', 'an unexpected error in the sidecar', { cause: error });
}

/** Quotes nothing of a request. */
export function logFailure(log: Logger, route: string, error: SidecarError<CountedErrorCode>): void {
  log.warn({ route, ...reasonOf(error) }, 'request not completed');
}

/** No path, no query, no field. */
export interface FailedRequest {
  readonly route: string;
  readonly upstream: string | undefined;
  readonly method: string;
  readonly status: number;
  readonly grpcStatus?: GrpcStatus | undefined;
  readonly durationMs: number;
  readonly requestId: string;
  readonly traceId: string | undefined;
  readonly spanId: string | undefined;
}

/** Characters; clients may send any method. */
const MAX_METHOD_LENGTH = 32;

export function shortMethod(method: string): string {
  return method.slice(0, MAX_METHOD_LENGTH);
}

/** Repeats are limited, and counted. */
export function logFailedRequest(
  log: Logger,
  { route, method, ...rest }: FailedRequest,
  error: SidecarError<CountedErrorCode>,
): void {
  log.warn({ route, method: shortMethod(method), ...rest, ...reasonOf(error) }, 'request not completed');
}

export type Refused = 'token' | 'bound_token' | RefusedProof;

/** For whoever sees that an upstream refuses tokens. */
export const REFUSED_TOKEN_ADVICE =
  "look in the upstream's log for the check that fails: usually audience or scope of the credential, or a clock";

const REFUSED_BOUND_TOKEN_ADVICE = `${REFUSED_TOKEN_ADVICE}; if its WWW-Authenticate has no scheme DPoP, it takes no bound tokens`;

export function logRefusal(log: Logger, { name, upstream, credential }: RouteConfig, refused: Refused): void {
  const where = { route: name, upstream: upstream.authority, credential };
  if (refused === 'token' || refused === 'bound_token') {
    const advice = refused === 'token' ? REFUSED_TOKEN_ADVICE : REFUSED_BOUND_TOKEN_ADVICE;
    log.warn({ ...where, advice }, 'the upstream refuses the token');
    return;
  }
  const url = `${upstream.protocol}://${upstream.authority}${upstream.basePath}`;
  log.warn({ ...where, ...refusedProof(refused, url) }, 'the upstream refuses the proof of the token');
}

/** @param url the upstream's, as the sidecar calls it. */
function refusedProof(
  refused: RefusedProof,
  url: string,
): { readonly reason: string; readonly advice: string } {
  switch (refused) {
    case 'proof_refused':
      return {
        reason: 'it answers 401 invalid_dpop_proof',
        advice: `compare the clocks of both, and the URL by which the upstream knows itself with ${url}, which the proof names: a gateway between them may rewrite it`,
      };
    case 'nonce_refused':
      return {
        reason: 'it answers 401 use_dpop_nonce, and the request cannot be sent again with another nonce',
        advice:
          'see whether the answer has one field DPoP-Nonce, whether the next request with it is taken, and whether bodies exceed limits.replay',
      };
  }
}

function reasonOf(error: SidecarError<CountedErrorCode>): Readonly<Record<string, string | undefined>> {
  const cause = error.cause === undefined ? undefined : messageOf(error.cause);
  return { error: error.code, reason: error.message, cause };
}
