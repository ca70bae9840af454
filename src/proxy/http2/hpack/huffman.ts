/** RFC 7541 §5.2. None is written: on short paths time is worth more than octets. */

/** In bits, of octets and EOS. The canonical code of Appendix B follows from them. */
export const CODE_LENGTHS: readonly number[] = `
13 23 28 28 28 28 28 28 28 24 30 28 28 30 28 28 28 28 28 28 28 28 30 28 28 28 28 28 28 28 28 28
 6 10 10 12 13  6  8 11 10 10  8 11  8  6  6  6  5  5  5  6  6  6  6  6  6  6  7  8 15  6 12 10
13  6  7  7  7  7  7  7  7  7  7  7  7  7  7  7  7  7  7  7  7  7  7  7  8  7  8 13 19 13 14  6
15  5  6  5  6  5  6  6  6  5  7  7  6  6  6  5  6  7  6  5  5  6  7  7  7  7  7 15 11 14 13 28
20 22 20 20 22 22 22 23 22 23 23 23 23 23 24 23 24 24 22 23 24 23 23 23 23 21 22 23 22 23 23 24
22 21 20 22 22 23 23 21 23 22 22 24 21 22 23 23 21 21 22 21 23 22 23 23 20 22 22 22 23 22 22 23
26 26 20 19 22 23 22 25 26 26 26 27 27 26 24 25 19 21 26 27 27 26 27 24 21 21 26 26 28 27 27 27
20 24 20 21 22 21 21 23 22 22 25 25 24 24 26 23 26 27 26 26 27 27 27 27 27 28 27 27 27 27 27 26
30`
  .trim()
  .split(/\s+/)
  .map(Number);

const EOS = 256;
const MAX_BITS = 30;
/** Few strings have longer codes. */
const SHORT_BITS = 8;

/** By the next eight bits: length in the upper octet, symbol in the lower; 0 for a longer code. */
const SHORT = new Uint16Array(1 << SHORT_BITS);
/** By length: first code, count, and where symbols begin. */
const FIRST_CODE = new Uint32Array(MAX_BITS + 1);
const COUNT = new Uint16Array(MAX_BITS + 1);
const OFFSET = new Uint16Array(MAX_BITS + 1);
const SYMBOLS = Uint16Array.from(CODE_LENGTHS.keys()).sort(
  (a, b) => (CODE_LENGTHS[a] as number) - (CODE_LENGTHS[b] as number) || a - b,
);

function fillTables(): void {
  let code = 0;
  let position = 0;
  for (let length = 1; length <= MAX_BITS; length++) {
    code *= 2;
    FIRST_CODE[length] = code;
    OFFSET[length] = position;
    while (position < SYMBOLS.length && CODE_LENGTHS[SYMBOLS[position] as number] === length) {
      if (length <= SHORT_BITS) {
        const from = code << (SHORT_BITS - length);
        SHORT.fill((length << 8) | (SYMBOLS[position] as number), from, from + (1 << (SHORT_BITS - length)));
      }
      position++;
      code++;
    }
    COUNT[length] = position - (OFFSET[length] as number);
  }
}

fillTables();

const FIRST_SCRATCH_BYTES = 4096;

let scratch = Buffer.allocUnsafeSlow(FIRST_SCRATCH_BYTES);

/** One char an octet. Undefined if it holds EOS, or padding is not less than eight bits of EOS. */
export function decodeHuffman(bytes: Uint8Array, start: number, end: number): string | undefined {
  // No code is shorter than five bits.
  const longest = Math.ceil(((end - start) * 8) / 5);
  if (longest > scratch.length) scratch = Buffer.allocUnsafeSlow(longest * 2);
  const out = scratch;
  let length = 0;
  let at = start;
  /** The last `bits` bits are pending. */
  let pending = 0;
  let bits = 0;

  for (;;) {
    if (bits < SHORT_BITS) {
      if (at === end) break;
      pending = ((pending << 8) | (bytes[at++] as number)) & 0xffff;
      bits += 8;
    }
    const entry = SHORT[(pending >>> (bits - SHORT_BITS)) & 0xff] as number;
    if (entry !== 0) {
      out[length++] = entry;
      bits -= entry >>> 8;
      continue;
    }
    // Rare: bit by bit from the ninth on.
    bits -= SHORT_BITS;
    let code = (pending >>> bits) & 0xff;
    let codeBits = SHORT_BITS;
    let symbol = -1;
    while (symbol === -1) {
      if (bits === 0) {
        if (at === end) return undefined;
        pending = bytes[at++] as number;
        bits = 8;
      }
      bits--;
      code = (code << 1) | ((pending >>> bits) & 1);
      codeBits++;
      const index = code - (FIRST_CODE[codeBits] as number);
      if (index < (COUNT[codeBits] as number))
        symbol = SYMBOLS[(OFFSET[codeBits] as number) + index] as number;
    }
    if (symbol === EOS) return undefined;
    out[length++] = symbol;
  }

  // Codes of five to seven bits, then ones.
  while (bits > 0) {
    const entry = SHORT[((pending << (SHORT_BITS - bits)) | (0xff >>> bits)) & 0xff] as number;
    if (entry === 0 || entry >>> 8 > bits) break;
    out[length++] = entry;
    bits -= entry >>> 8;
  }
  const ones = (1 << bits) - 1;
  return (pending & ones) === ones ? out.toString('latin1', 0, length) : undefined;
}
