/** Longer texts are copied through a buffer of their own. */
const SCRATCH = Buffer.allocUnsafeSlow(8 * 1024);

/**
 * The same text, of octets, in memory of its own. A concatenated string is copied part by part on each use; a slice
 * keeps all that it was cut from, as an id of 32 digits keeps the 64 KB of its head.
 */
export function ownText(text: string): string {
  if (text.length > SCRATCH.length) return Buffer.from(text, 'latin1').toString('latin1');
  return SCRATCH.toString('latin1', 0, SCRATCH.write(text, 'latin1'));
}
