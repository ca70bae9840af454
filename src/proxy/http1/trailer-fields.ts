/**
 * Trailer fields come when routing, authentication and framing have long been decided. A field that could have
 * swayed them, had it stood in the head, must not be merged into it later by anybody (RFC 9110 §6.5.1): such fields
 * are dropped. Those that frame the body or close the connection are refused instead: some readers heed them even
 * here, and nobody sends them here in good faith.
 */

import type { FieldLines } from './field-lines.ts';
import type { RefusalReason } from './message-refused.ts';

const FORBIDDEN = new Set([
  // Framing and routing
  'expect',
  'forwarded',
  'host',
  'keep-alive',
  'max-forwards',
  'te',
  'trailer',
  'upgrade',
  'via',
  // Authentication and state
  'authorization',
  'cookie',
  'set-cookie',
  'www-authenticate',
  // How a response is to be handled, and request modifiers
  'age',
  'allow',
  'cache-control',
  'date',
  'expires',
  'location',
  'pragma',
  'range',
  'retry-after',
  'vary',
  'warning',
]);

const FORBIDDEN_PREFIX = /^(?:access-control-|content-|if-|proxy-|sec-|token-sidecar-|x-forwarded-)/;

const REFUSED = /^(?:content-length|transfer-encoding|connection|proxy-connection)$/i;

/** Whether a field of this name, in any case, may stand in no trailer section. */
function isForbiddenTrailer(name: string): boolean {
  const lower = name.toLowerCase();
  return FORBIDDEN.has(lower) || FORBIDDEN_PREFIX.test(lower);
}

/** The fields without those that may stand in no trailer section, in order. */
export function permittedTrailers(fields: FieldLines): FieldLines | RefusalReason {
  const permitted: string[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as string;
    if (REFUSED.test(name)) return 'control_in_trailers';
    if (!isForbiddenTrailer(name)) permitted.push(name, fields[at + 1] as string);
  }
  return permitted;
}
