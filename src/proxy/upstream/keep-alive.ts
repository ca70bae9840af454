import { type Fields, fieldValues, hasField } from '../http/fields.ts';

/** Just under the minute after which common load balancers silently drop an idle connection. */
export const IDLE_MS = 55_000;

/** A request must reach the upstream before it closes. */
const MARGIN_MS = 1_000;

/** The part used of a timeout that is too short for the margin. */
const USED_OF_SHORT = 0.5;

const TIMEOUT = /(?:^|[,;\s])timeout=(\d{1,6})(?:$|[,;\s])/i;

/**
 * How long a connection may be reused after an answer with these fields, in ms: less than the upstream says in
 * `Keep-Alive: timeout=…` (RFC 2068 §19.7.1.1), which many servers send and few exceed. A request that meets a closing
 * connection is lost unless it may be sent twice.
 */
export function reusableForMs(fields: Fields): number {
  if (!hasField(fields, 'keep-alive')) return IDLE_MS;
  const seconds = TIMEOUT.exec(fieldValues(fields, 'keep-alive').join(', '))?.[1];
  if (seconds === undefined) return IDLE_MS;
  const timeoutMs = Number(seconds) * 1000;
  return Math.min(IDLE_MS, Math.max(timeoutMs * USED_OF_SHORT, timeoutMs - MARGIN_MS));
}
