/** Turns the bytes of an answer into text: decompressed, decoded, and bounded before and after. */

import { systemCodeOf } from '../../platform/errors.ts';

/** A token and its JSON are a few KiB; more than this is not read. Bytes, before and after decompression. */
export const MAX_ANSWER_BYTES = 256 * 1024;

/** The provider sent more than is read. The message may be shown: it holds nothing of the answer. */
export class OverlongAnswer extends Error {
  constructor() {
    super(`an answer of more than ${MAX_ANSWER_BYTES} bytes`);
  }
}

/** The body does not match its Content-Encoding. The message may be shown: it holds nothing of the answer. */
export class GarbledAnswer extends Error {}

type Decompress = 'unzip' | 'brotliDecompress';

/** Content codings that some providers send unasked (RFC 9110 §8.4.1). */
const CODINGS: Readonly<Record<string, Decompress | 'none'>> = {
  identity: 'none',
  gzip: 'unzip',
  'x-gzip': 'unzip',
  deflate: 'unzip',
  br: 'brotliDecompress',
};

/**
 * @throws {OverlongAnswer}
 * @throws {GarbledAnswer}
 */
export async function decodeBody(
  bytes: Buffer,
  contentEncoding: string | undefined,
  contentType: string,
): Promise<string> {
  const coding = (contentEncoding ?? '').trim().toLowerCase() || 'identity';
  const how = Object.hasOwn(CODINGS, coding) ? CODINGS[coding] : undefined;
  if (how === undefined)
    throw new GarbledAnswer('a body in a Content-Encoding other than gzip, deflate and br');
  const plain = how === 'none' || bytes.length === 0 ? bytes : await decompress(how, bytes, coding);
  return decodeText(plain, contentType);
}

function decompress(how: Decompress, bytes: Buffer, coding: string): Promise<Buffer> {
  // Loaded only here: few providers compress.
  const zlib = process.getBuiltinModule('node:zlib');
  return new Promise((resolve, reject) => {
    const bound = { maxOutputLength: MAX_ANSWER_BYTES };
    function settle(error: Error | null, plain: Buffer): void {
      if (error === null) resolve(plain);
      else if (systemCodeOf(error) === 'ERR_BUFFER_TOO_LARGE') reject(new OverlongAnswer());
      else reject(new GarbledAnswer(`a body that is not ${coding}, though its Content-Encoding says so`));
    }
    if (how === 'unzip') zlib.unzip(bytes, bound, settle);
    else zlib.brotliDecompress(bytes, bound, settle);
  });
}

/** JSON is UTF-8 (RFC 8259 §8.1), yet some providers use another charset, or a byte order mark, which a decoder removes. */
function decodeText(bytes: Buffer, contentType: string): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder('utf-16le').decode(bytes);
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder('utf-16be').decode(bytes);
  const [, charset = 'utf-8'] = /;\s*charset\s*=\s*"?([\w:.-]{1,40})/i.exec(contentType) ?? [];
  return decoderFor(charset).decode(bytes);
}

function decoderFor(charset: string): TextDecoder {
  try {
    return new TextDecoder(charset);
  } catch {
    // An unknown charset. Most agree with ASCII on the characters of a token.
    return new TextDecoder();
  }
}
