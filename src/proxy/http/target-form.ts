/**
 * The four forms of a request target (RFC 9112 §3.2). Only octets of the TARGET class reach these functions.
 */

import { isAuthorityWithPort, isDialledAuthority } from './authority.ts';

export type TargetForm = 'origin' | 'absolute' | 'authority' | 'asterisk';

interface AbsoluteTarget {
  /** In lower case. */
  readonly scheme: string;
  /** Host and optional port as they came. */
  readonly authority: string;
  /** Path and query as they came; empty when the target ends with its authority. */
  readonly pathAndQuery: string;
}

const ABSOLUTE = /^([A-Za-z]+):\/\/([^/?]+)(.*)$/;

/** The form of `target`, or undefined when it has none or `method` does not go with it. */
export function formOf(method: string, target: string): TargetForm | undefined {
  if (method === 'CONNECT') return isAuthorityWithPort(target) ? 'authority' : undefined;
  if (target.startsWith('/')) return 'origin';
  if (target === '*') return method === 'OPTIONS' ? 'asterisk' : undefined;
  return splitAbsoluteTarget(target) === undefined ? undefined : 'absolute';
}

/**
 * Splits an absolute-form target (RFC 9112 §3.2.2); undefined if it is not one, its scheme holds more than letters, or
 * its authority is invalid.
 */
export function splitAbsoluteTarget(target: string): AbsoluteTarget | undefined {
  const match = ABSOLUTE.exec(target);
  if (match === null) return undefined;
  const [, scheme, authority, pathAndQuery] = match as unknown as [string, string, string, string];
  return isDialledAuthority(authority)
    ? { scheme: scheme.toLowerCase(), authority, pathAndQuery }
    : undefined;
}
