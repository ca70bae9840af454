/** What a decoder read, written again by the codec's encoder on one connection, as the proxy passes it on. */

import type { ConnectionFault } from '../../../../../src/proxy/http2/errors.ts';
import { FrameOutput } from '../../../../../src/proxy/http2/frame-output.ts';
import type { TooLarge } from '../../../../../src/proxy/http2/hpack/decoder.ts';
import { HpackEncoder } from '../../../../../src/proxy/http2/hpack/encoder.ts';
import type { DecodedFields } from '../../../../../src/proxy/http2/hpack/known-blocks.ts';
import type { ReadResult, Section } from './libraries.ts';

/** Credentials are never indexed, however they came. */
const CREDENTIALS = ['authorization', 'proxy-authorization'];

interface Received {
  readonly found: DecodedFields | TooLarge | ConnectionFault;
  /** A SETTINGS_HEADER_TABLE_SIZE that the peer has announced before. */
  readonly limit?: number | undefined;
}

/** Blocks, and what they must mean. Of a section that must not be passed on the block is given up, as a faulty head is. */
export function relayed(sections: readonly Received[]): (ReadResult & { readonly expected: Section })[] {
  const encoder = new HpackEncoder();
  const output = new FrameOutput(Buffer.alloc(1));
  const messages: (ReadResult & { readonly expected: Section })[] = [];
  let announced: number | undefined;
  for (const { found, limit } of sections) {
    if (limit !== undefined) {
      encoder.setPeerTableSize(limit);
      announced = limit;
    }
    encoder.begin(output);
    if (found.kind !== 'fields' || found.fields.some((text) => /[\0\r\n]/.test(text))) {
      output.take();
      encoder.abandon();
      continue;
    }
    const { fields, neverIndexed } = found;
    encoder.fields(output, fields, neverIndexed);
    const never = fields.filter(
      (name, index) => index % 2 === 0 && (neverIndexed.includes(name) || CREDENTIALS.includes(name)),
    );
    messages.push({ block: Buffer.from(output.take()), limit: announced, expected: { fields, never } });
    announced = undefined;
  }
  return messages;
}
