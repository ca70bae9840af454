import type { ProxyErrorCode, SidecarError } from '../../platform/errors.ts';
import { hasField } from '../http/fields.ts';
import {
  type Delivery,
  type IncomingRequest,
  UpstreamReset,
  type UpstreamStream,
  type UpstreamStreams,
  type UpstreamUser,
} from '../streams/contract.ts';

/** Each token gets a first attempt and at most one retry. */
type Attempt =
  /** On any connection with room; one idle for too long is checked first. */
  | { readonly kind: 'first' }
  /** On a new connection: the neighbours of a closed one are probably closed too. */
  | { readonly kind: 'anew' }
  /** On any connection: the upstream refused only the request. */
  | { readonly kind: 'after-refusal' };

export const FIRST: Attempt = { kind: 'first' };
const ANEW: Attempt = { kind: 'anew' };
const AFTER_REFUSAL: Attempt = { kind: 'after-refusal' };

/**
 * Undefined if there is no retry.
 * @param repeatable the request is whole, and sending it twice has no further effect.
 */
export function attemptAfter(
  failed: Attempt,
  error: SidecarError<ProxyErrorCode>,
  delivery: Delivery,
  { whole, repeatable }: { readonly whole: boolean; readonly repeatable: boolean },
): Attempt | undefined {
  if (failed.kind !== 'first') return undefined;
  switch (delivery) {
    case 'unprocessed':
      if (!whole) return undefined;
      return error instanceof UpstreamReset ? AFTER_REFUSAL : ANEW;
    case 'unsent':
      return whole ? ANEW : undefined;
    case 'unanswered':
      return repeatable ? ANEW : undefined;
    case 'lost':
      return undefined;
  }
}

/**
 * If the stream is not ready, `onConnected` is called once it is.
 * @param maxIdleMs see `UpstreamStreams.acquire`.
 * @throws {SidecarError} `overloaded`.
 */
export function acquireFor(
  { kind }: Attempt,
  streams: UpstreamStreams,
  request: IncomingRequest,
  user: UpstreamUser,
  maxIdleMs: number,
): UpstreamStream {
  switch (kind) {
    case 'first':
      return streams.acquire(request, user, maxIdleMs);
    case 'anew':
      return streams.acquireFresh(request, user);
    case 'after-refusal':
      return streams.acquireForRetry(request, user);
  }
}

/** RFC 9110 §9.2.2. */
const IDEMPOTENT: ReadonlySet<string> = new Set(['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PUT', 'TRACE']);

/** A connection used this recently is presumed open. After a wrong guess, a request that must not be sent twice fails. */
export const FRESH_MS = 100;

/**
 * For a request that may be sent twice. Bounded, since what an upstream sends unasked before it closes would pass for
 * the answer.
 */
export const FRESH_FOR_REPEATABLE_MS = 1_000;

/** Whether sending twice does no more than sending once (RFC 9110 §9.2.2). */
export function isRepeatable({ method, fields }: Pick<IncomingRequest, 'method' | 'fields'>): boolean {
  return IDEMPOTENT.has(method) || hasField(fields, 'idempotency-key');
}
