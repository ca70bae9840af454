/** Field blocks that share a table, most of them as an encoder writes them, some with an octet changed. */

import type { Random } from '../../http1/fuzz/random.ts';
import { BlockWriter, integer } from './block-writer.ts';

const NAMES = [':path', ':status', 'accept', 'cookie', 'x', 'via', 'x-long-name-of-a-field'];

export function fuzzBlocks(random: Random): Buffer[] {
  const writer = new BlockWriter(random);
  return Array.from({ length: 1 + random.below(5) }, () => {
    const fields = Array.from(
      { length: random.below(6) },
      () => [random.pick(NAMES), someValue(random)] as const,
    );
    const block = writer.block(fields);
    return random.chance(0.2) ? changed(random, block) : block;
  });
}

function someValue(random: Random): string {
  const length = random.chance(0.1) ? random.below(300) : random.below(12);
  return String.fromCharCode(
    ...Array.from({ length }, () => (random.chance(0.8) ? 97 + random.below(26) : random.below(256))),
  );
}

function changed(random: Random, block: Buffer): Buffer {
  const at = random.below(block.length + 1);
  switch (random.below(5)) {
    case 0:
      return Buffer.concat([block.subarray(0, at), Buffer.from([random.below(256)]), block.subarray(at)]);
    case 1:
      return Buffer.concat([block.subarray(0, at), block.subarray(at + 1)]);
    case 2:
      return block.subarray(0, at);
    case 3:
      return Buffer.concat([integer(0x20, 5, random.below(5000)), block]);
    default: {
      const copy = Buffer.from(block);
      if (at < copy.length) copy[at] = random.below(256);
      return copy;
    }
  }
}
