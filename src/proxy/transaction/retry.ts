/** Which failures are retried and on which connection; which requests may be sent twice. */

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

/**
 * Which connection a request is sent on. Each token gets one first attempt and at most one retry, whose kind depends on
 * how the first attempt failed.
 */
type Attempt =
  /** On any connection with room; one idle for too long is checked first. */
  | { readonly kind: 'first' }
  /** On a new connection: the previous one has closed, and most likely its neighbours too. */
  | { readonly kind: 'anew' }
  /** On another connection or the same one: the upstream refused the request, and the connection lives on. */
  | { readonly kind: 'after-refusal' };

export const FIRST: Attempt = { kind: 'first' };
const ANEW: Attempt = { kind: 'anew' };
const AFTER_REFUSAL: Attempt = { kind: 'after-refusal' };

/**
 * The retry after a failed attempt; undefined if there is none.
 * @param repeatable whether the request may be sent twice: it is whole, and repeating it has no further effect.
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
 * A stream for an attempt. If it is not ready, the user's `connected` is called once it is.
 * @param trustMs as in `UpstreamStreams.acquire`.
 * @throws {SidecarError} `overloaded`.
 */
export function acquireFor(
  { kind }: Attempt,
  streams: UpstreamStreams,
  request: IncomingRequest,
  user: UpstreamUser,
  trustMs: number,
): UpstreamStream {
  switch (kind) {
    case 'first':
      return streams.acquire(request, user, trustMs);
    case 'anew':
      return streams.acquireNew(request, user);
    case 'after-refusal':
      return streams.acquireAgain(request, user);
  }
}

/** RFC 9110 §9.2.2. */
const IDEMPOTENT: ReadonlySet<string> = new Set(['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PUT', 'TRACE']);

/**
 * A connection used this recently is presumed open; one idle for longer may have closed while this process stood still.
 * A wrong guess costs a request that must not be sent twice.
 */
export const FRESH_MS = 100;

/**
 * The same for a request that may be sent twice: a closed connection costs it nothing, but whatever an upstream sends
 * unasked, as some do before they close, would pass for its answer.
 */
export const FRESH_FOR_REPEATABLE_MS = 1_000;

/** Whether sending a request twice does no more than sending it once (RFC 9110 §9.2.2). */
export function isRepeatable({ method, fields }: Pick<IncomingRequest, 'method' | 'fields'>): boolean {
  return IDEMPOTENT.has(method) || hasField(fields, 'idempotency-key');
}
