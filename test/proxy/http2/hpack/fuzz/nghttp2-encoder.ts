/** The field blocks of requests as nghttp2 writes them, by way of Node's client on a pair of streams. */

import { once } from 'node:events';
import http2 from 'node:http2';
import { duplexPair } from 'node:stream';
import { FrameReader } from '../../../../../src/proxy/http2/frame-reader.ts';
import { PREFACE } from '../../../../../src/proxy/http2/settings.ts';
import { frame } from '../../frames.ts';
import { namesAndValues, type Step } from './sequence-grammar.ts';

const SETTINGS_HEADER_TABLE_SIZE = 1;
const SETTINGS_MAX_CONCURRENT_STREAMS = 3;
const FRAMES = { frameBytes: 16_384, blockBytes: 1_000_000, continuations: 100 };

/** Fields may repeat. */
const OPTIONS = { maxDeflateDynamicTableSize: 65_536, strictSingleValueFields: false };

export async function encodeWithNghttp2(steps: readonly Step[]): Promise<Buffer[]> {
  const blocks: Buffer[] = [];
  let acks = 0;
  const [client, peer] = duplexPair();
  const reader = new FrameReader(FRAMES);
  let prefaceLeft = PREFACE.length;
  peer.on('data', (octets: Buffer) => {
    const chunk = octets.subarray(Math.min(prefaceLeft, octets.length));
    prefaceLeft -= octets.length - chunk.length;
    for (let at = 0; ; at = reader.position) {
      const next = reader.read(chunk, at);
      if (next === undefined) break;
      if (next.kind === 'headers') blocks.push(Buffer.from(next.block));
      if (next.kind === 'settings_ack') acks++;
    }
    peer.emit('read');
  });
  const session = http2.connect('http://a', { ...OPTIONS, createConnection: () => client });
  session.on('error', (error) => peer.destroy(error));
  const said = async (isSaid: () => boolean): Promise<void> => {
    while (!isSaid()) await once(peer, 'read');
  };
  const set = async (setting: number, value: number): Promise<void> => {
    const before = acks;
    const payload = Buffer.alloc(6);
    payload.writeUInt16BE(setting);
    payload.writeUInt32BE(value, 2);
    peer.write(frame(4, 0, 0, payload));
    await said(() => acks > before);
  };

  await set(SETTINGS_MAX_CONCURRENT_STREAMS, 1_000_000);
  for (const [index, { limit, fields }] of steps.entries()) {
    if (limit !== undefined) {
      await said(() => blocks.length === index);
      await set(SETTINGS_HEADER_TABLE_SIZE, limit);
    }
    const headers = Object.assign(namesAndValues(fields), {
      [http2.sensitiveHeaders]: fields.flatMap(([name, , never]) => (never ? [name] : [])),
    });
    session.request(headers, { endStream: true }).on('error', () => {});
  }
  await said(() => blocks.length === steps.length);
  session.destroy();
  peer.destroy();
  return blocks;
}
