/**
 * Trailer fields come when routing, authentication and framing have long been decided. A field that could have swayed
 * them from the head must not be merged into it later by anybody (RFC 9110 §6.5.1): such fields are dropped, whatever
 * version of HTTP brought them.
 */

import type { Fields } from './fields.ts';

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

/** Proofs of callers come with underscores too, which some servers read as hyphens. */
const FORBIDDEN_PREFIX = /^(?:access-control-|content-|if-|proxy[-_]|sec-|token[-_]sidecar[-_]|x-forwarded-)/;

/** Fields reserved for the proxy. */
const OWN_PREFIX = /^token-sidecar-/i;

/** The fields that a trailer section may hold, in order. */
export function permittedTrailers(fields: Fields): string[] {
  const permitted: string[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as string;
    if (!isForbidden(name)) permitted.push(name, fields[at + 1] as string);
  }
  return permitted;
}

/**
 * The trailers of an answer to a gRPC call, without fields reserved for the proxy. They are metadata, which services
 * name as they like and clients keep apart from the head.
 */
export function permittedMetadata(fields: Fields): string[] {
  const permitted: string[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as string;
    if (!OWN_PREFIX.test(name)) permitted.push(name, fields[at + 1] as string);
  }
  return permitted;
}

function isForbidden(name: string): boolean {
  const lower = name.toLowerCase();
  return FORBIDDEN.has(lower) || FORBIDDEN_PREFIX.test(lower);
}
