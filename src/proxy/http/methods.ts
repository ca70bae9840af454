/** Clients may send any method; counts by method use one of these (RFC 9110 §9.3, RFC 5789). */

export const OTHER_METHOD = '_OTHER';

export const KNOWN_METHODS = [
  OTHER_METHOD,
  'CONNECT',
  'DELETE',
  'GET',
  'HEAD',
  'OPTIONS',
  'PATCH',
  'POST',
  'PUT',
  'TRACE',
] as const;

const INDEX: ReadonlyMap<string, number> = new Map(KNOWN_METHODS.map((method, index) => [method, index]));

/** Its index in `KNOWN_METHODS`; that of `_OTHER` for a method that is none of them. */
export function methodIndexOf(method: string): number {
  return INDEX.get(method) ?? 0;
}

export function knownMethod(method: string): string {
  return KNOWN_METHODS[methodIndexOf(method)] as string;
}
