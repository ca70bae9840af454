/**
 * Which requests may be sent twice, and hence how long an idle connection is presumed open: a wrong guess costs a
 * request that must not be sent twice.
 */

import { hasField } from '../http/fields.ts';
import type { IncomingRequest } from '../streams/message.ts';

/** RFC 9110 §9.2.2. */
const IDEMPOTENT: ReadonlySet<string> = new Set(['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PUT', 'TRACE']);

/** A connection used this recently is presumed open; one idle for longer may have closed while this process stood still. */
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
