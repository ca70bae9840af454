/** The public vectors of HPACK: a story is what one encoder wrote on one connection, with what each block means. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { HpackDecoder } from '../../../src/proxy/http2/hpack/decoder.ts';
import { KnownBlocks } from '../../../src/proxy/http2/hpack/known-blocks.ts';
import { STORIES } from './stories.ts';

interface Story {
  readonly cases: readonly {
    readonly wire: string;
    /** A SETTINGS_HEADER_TABLE_SIZE that was acknowledged; some stories say the same size before each block. */
    readonly header_table_size?: number;
    readonly headers: readonly Readonly<Record<string, string>>[];
  }[];
}

const ENCODERS = [
  'go-hpack',
  'haskell-http2-linear',
  'haskell-http2-linear-huffman',
  'haskell-http2-naive',
  'haskell-http2-naive-huffman',
  'haskell-http2-static',
  'haskell-http2-static-huffman',
  'nghttp2',
  'nghttp2-16384-4096',
  'nghttp2-change-table-size',
  'node-http2-hpack',
];

/** Of a file's blocks, read by one decoder, those that it reads otherwise. */
function misread(encoder: string, file: string): { blocks: number; misread: string[] } {
  const { cases } = JSON.parse(readFileSync(join(STORIES, encoder, file), 'utf8')) as Story;
  const decoder = new HpackDecoder({ sectionBytes: 65_536, sectionFields: 200 }, new KnownBlocks());
  let limit = 4096;
  const found: string[] = [];
  for (const [index, { wire, header_table_size, headers }] of cases.entries()) {
    if (header_table_size !== undefined && header_table_size !== limit) {
      limit = header_table_size;
      decoder.setLimit(limit);
    }
    const decoded = decoder.decode(Buffer.from(wire, 'hex'));
    const fields = headers.flatMap((field) => Object.entries(field).flat());
    const text = JSON.stringify(decoded.kind === 'fields' ? decoded.fields : decoded);
    if (text !== JSON.stringify(fields)) found.push(`${file}, block ${index}, ${wire}: ${text}`);
  }
  return { blocks: cases.length, misread: found };
}

describe.each(ENCODERS)('each block that %s wrote means what its story says', (encoder) => {
  const files = readdirSync(join(STORIES, encoder)).filter((file) => file.endsWith('.json'));

  it(`in ${files.length} stories`, () => {
    const read = files.map((file) => misread(encoder, file));
    expect(read.flatMap((story) => story.misread)).toEqual([]);
    expect(read.length).toBeGreaterThan(30);
    expect(read.reduce((sum, { blocks }) => sum + blocks, 0)).toBeGreaterThan(1000);
  });
});
