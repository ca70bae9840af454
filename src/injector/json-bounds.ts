/** Bounds what parsing a JSON text would cost, without parsing it. */

/** A pod's own fields nest some fifteen levels deep, its managed fields as many again. */
const MAX_DEPTH = 64;

/** A pod of the largest size that etcd accepts, filled with short variables, has half as many. */
const MAX_VALUES = 200_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Why these bytes of JSON must not be parsed, or undefined. Four megabytes of brackets would become a hundred of
 * objects, and block the event loop for most of a second. Whether they are JSON at all is left to the parser.
 */
export function beyondJsonBounds(bytes: Uint8Array): string | undefined {
  let depth = 0;
  let values = 1;
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case QUOTE:
        at = endOfString(bytes, at);
        break;
      case 0x7b: // {
      case 0x5b: // [
        values++;
        if (++depth > MAX_DEPTH) return `the JSON is more than ${MAX_DEPTH} levels deep`;
        break;
      case 0x7d: // }
      case 0x5d: // ]
        depth--;
        break;
      case 0x2c: // ,
        values++;
        break;
    }
    if (values > MAX_VALUES) return `the JSON has more than ${MAX_VALUES} values`;
  }
  return undefined;
}

/** Index of the quote that ends the string beginning at `start`, or of the last byte. */
function endOfString(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}
