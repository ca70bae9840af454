/** Longer texts get memory of their own to be copied in. */
const SCRATCH = Buffer.allocUnsafeSlow(8 * 1024);

/**
 * The same text, of octets, in memory of its own. One that was put together is copied part by part each time; one that was cut
 * out holds all that it was cut from, as an id of 32 digits holds the 64 KB of its head.
 */
export function ownText(text: string): string {
  if (text.length > SCRATCH.length) return Buffer.from(text, 'latin1').toString('latin1');
  return SCRATCH.toString('latin1', 0, SCRATCH.write(text, 'latin1'));
}
