/**
 * The 24 octets with which a client begins an HTTP/2 connection (RFC 9113 §3.4). They were chosen so that no HTTP/1.1
 * reader takes them for a request; on a port that serves both, they tell one from the other.
 */

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** What the first octets of a connection say so far: `partial` may still become either. */
type PrefaceVerdict = 'http2' | 'other' | 'partial';

/** Judges the first octets, all that came since the connection was made. */
export function judgePreface(octets: Buffer): PrefaceVerdict {
  const length = Math.min(octets.length, PREFACE.length);
  if (PREFACE.compare(octets, 0, length, 0, length) !== 0) return 'other';
  return length === PREFACE.length ? 'http2' : 'partial';
}

/**
 * Reads the preface where HTTP/2 is certain, from any pieces.
 *
 * ```ts
 * const next = reader.read(chunk, 0); // −1: not the preface
 * if (reader.complete) // frames begin at chunk[next]
 * ```
 */
export class PrefaceReader {
  #matched = 0;

  get complete(): boolean {
    return this.#matched === PREFACE.length;
  }

  /** Reads on at `chunk[start]`; the index of the first octet not taken, or −1 when an octet is not the preface's. */
  read(chunk: Buffer, start: number): number {
    const length = Math.min(chunk.length - start, PREFACE.length - this.#matched);
    if (PREFACE.compare(chunk, start, start + length, this.#matched, this.#matched + length) !== 0) return -1;
    this.#matched += length;
    return start + length;
  }
}
