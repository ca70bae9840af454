/** The octets of a sequence's blocks, as its encoder writes them. */

import { Random } from '../../../http1/fuzz/random.ts';
import { BlockWriter } from '../../fuzz/block-writer.ts';
import type { Libraries } from './libraries.ts';
import { encodeWithNghttp2 } from './nghttp2-encoder.ts';
import type { Sequence, Step } from './sequence-grammar.ts';

/** @param libraries for sequences whose encoder is one of them */
export async function encode(
  { encoder, steps }: Pick<Sequence, 'encoder' | 'steps'>,
  libraries: Libraries | undefined,
): Promise<Buffer[]> {
  const blocks = await written();
  return blocks.map((block, index) => {
    const change = steps[index]?.change;
    return change === undefined ? block : changed(new Random(change, 0), block);
  });

  async function written(): Promise<Buffer[]> {
    switch (encoder) {
      case 'writer':
        return write(steps);
      case 'nghttp2':
        return encodeWithNghttp2(steps);
      default:
        if (libraries === undefined) throw new Error(`${encoder} is not there to encode`);
        return libraries[encoder].encode(steps);
    }
  }
}

function write(steps: readonly Step[]): Buffer[] {
  const writer = new BlockWriter(new Random(0, 0));
  return steps.map(({ sizes, fields, seed }) => {
    const random = new Random(seed, 0);
    const references = random.chance(0.5) ? 'table' : 'static';
    return Buffer.concat([
      ...sizes.map((bytes) => writer.resize(bytes)),
      writer.block(fields, random, references),
    ]);
  });
}

function changed(random: Random, block: Buffer): Buffer {
  const at = random.below(block.length + 1);
  const octet = Buffer.from([random.below(256)]);
  switch (random.below(4)) {
    case 0:
      return Buffer.concat([block.subarray(0, at), octet, block.subarray(at)]);
    case 1:
      return Buffer.concat([block.subarray(0, at), block.subarray(at + 1)]);
    case 2:
      return block.subarray(0, at);
    default:
      return Buffer.concat([block.subarray(0, at), octet, block.subarray(at + 1)]);
  }
}
