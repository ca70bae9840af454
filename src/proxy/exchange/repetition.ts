/**
 * Which requests may be sent twice, and so how long a connection may have been idle to be taken for open: a mistake costs
 * a request that must not be sent twice.
 */

import { hasField } from '../http/fields.ts';
import type { IncomingRequest } from '../streams/message.ts';

/** RFC 9110 §9.2.2. */
const IDEMPOTENT: ReadonlySet<string> = new Set(['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PUT', 'TRACE']);

/** A connection used this recently is taken for open; by one idle for longer a process that stood still may be misled. */
export const FRESH_MS = 100;

/**
 * The same for a request that may be sent twice: the end of the connection costs it nothing, but what an upstream has said
 * unasked, as some do before they close, would pass for its answer.
 */
export const FRESH_FOR_REPEATABLE_MS = 1_000;

/** Whether a request could be sent twice without doing anything twice (RFC 9110 §9.2.2). */
export function isRepeatable({ method, fields }: Pick<IncomingRequest, 'method' | 'fields'>): boolean {
  return IDEMPOTENT.has(method) || hasField(fields, 'idempotency-key');
}
