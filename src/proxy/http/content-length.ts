/**
 * Content-Length: one decimal number without sign, below 2^53; undefined for anything else, even the list of equal
 * values that RFC 9110 §8.6 lets a recipient accept.
 */
export function parseContentLength(value: string): number | undefined {
  if (value === '') return undefined;
  let length = 0;
  for (let at = 0; at < value.length; at++) {
    const digit = value.charCodeAt(at) - 0x30;
    if (!(digit >= 0 && digit <= 9)) return undefined;
    length = length * 10 + digit;
    if (length > Number.MAX_SAFE_INTEGER) return undefined;
  }
  return length;
}
