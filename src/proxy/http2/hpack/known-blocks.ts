/**
 * What blocks of one direction mean, as peers repeat their heads. The key is the block, with the table's
 * version if it refers to the table. A ninth entry drops all others.
 */

import { makeLasting } from '../../http/lasting-fields.ts';
import { type Fields, sectionBytes } from '../fields.ts';

/** Larger blocks cost more to keep than they save. */
const MAX_BLOCKS = 8;
const MAX_BLOCK_BYTES = 256;
/** A few octets can stand for much, through the table. */
const MAX_SECTION_BYTES = 4096;

export interface DecodedFields {
  readonly kind: 'fields';
  /** Unchecked, one char an octet (latin1). A block that has come again gives one lasting array. */
  readonly fields: Fields;
  /** They must be passed on never indexed (RFC 7541 §6.2.3). */
  readonly neverIndexed: readonly string[];
}

interface KnownBlock {
  readonly decoded: DecodedFields;
  /** Name, value, … of entries that it adds to the table. It changes nothing else there. */
  readonly additions: readonly string[];
  /** A version of the table; undefined if it refers to no entry. */
  readonly refersTo: number | undefined;
}

/** Undefined for a block that is too large. */
export function keyOfBlock(block: Buffer): string | undefined {
  return block.length > MAX_BLOCK_BYTES ? undefined : block.toString('latin1');
}

export class KnownBlocks {
  readonly #blocks = new Map<string, KnownBlock>();

  /** @param tableVersion before the block. */
  get(key: string, tableVersion: number): KnownBlock | undefined {
    const known = this.#blocks.get(key);
    if (known === undefined || (known.refersTo ?? tableVersion) !== tableVersion) return undefined;
    makeLasting(known.decoded.fields);
    return known;
  }

  /** @param known nobody may change it any more. */
  keep(key: string, known: KnownBlock): void {
    if (sectionBytes(known.decoded.fields) > MAX_SECTION_BYTES) return;
    if (this.#blocks.size === MAX_BLOCKS) this.#blocks.clear();
    this.#blocks.set(key, known);
  }
}
