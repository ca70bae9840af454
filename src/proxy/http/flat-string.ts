const SCRATCH = Buffer.allocUnsafeSlow(8 * 1024);

/** A concatenated string is copied on each use, and a slice keeps up to 64 KB of head. */
export function flatString(text: string): string {
  if (text.length > SCRATCH.length) return Buffer.from(text, 'latin1').toString('latin1');
  return SCRATCH.toString('latin1', 0, SCRATCH.write(text, 'latin1'));
}
