/** Writes Distinguished Encoding Rules (X.690): tag, length, content. */

const SEQUENCE = 0x30;
const SET = 0x31;
const OBJECT_IDENTIFIER = 0x06;
const OCTET_STRING = 0x04;
const INTEGER = 0x02;
const BMP_STRING = 0x1e;
const CONTEXT_CONSTRUCTED = 0xa0;

function tagged(tag: number, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([Buffer.from([tag]), lengthOf(body.length), body]);
}

export const sequence = (...content: readonly Buffer[]): Buffer => tagged(SEQUENCE, ...content);

/** A set of one member, or of members in the order of their octets. */
export const set = (...content: readonly Buffer[]): Buffer => tagged(SET, ...content);

/** `[number]`, explicit. */
export const context = (number: number, ...content: readonly Buffer[]): Buffer =>
  tagged(CONTEXT_CONSTRUCTED | number, ...content);

export const octetString = (content: Buffer): Buffer => tagged(OCTET_STRING, content);

/** @param value from 0 to 127. */
export const smallInteger = (value: number): Buffer => tagged(INTEGER, Buffer.from([value]));

/** For text in the basic multilingual plane. */
export const bmpString = (text: string): Buffer => tagged(BMP_STRING, Buffer.from(text, 'utf16le').swap16());

/** @param dotted such as `1.2.840.113549.1.7.1`. */
export function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return tagged(OBJECT_IDENTIFIER, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

/** Seven bits per octet, all but the last marked. */
function base128(value: number): number[] {
  const octets = [value % 128];
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) {
    octets.unshift((rest % 128) | 0x80);
  }
  return octets;
}

function lengthOf(bytes: number): Buffer {
  if (bytes < 0x80) return Buffer.from([bytes]);
  const octets: number[] = [];
  for (let rest = bytes; rest > 0; rest = Math.floor(rest / 256)) octets.unshift(rest % 256);
  return Buffer.from([0x80 | octets.length, ...octets]);
}
