/** The minor version of an `HTTP-version` of major version 1 that starts at `at` (RFC 9112 §2.3). */
export function minorVersionOf(text: string, at: number): 0 | 1 | undefined {
  if (text.startsWith('HTTP/1.1', at)) return 1;
  return text.startsWith('HTTP/1.0', at) ? 0 : undefined;
}
