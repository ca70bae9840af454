/**
 * Blocks that came before on a connection, and what each means when it comes again. Clients and servers repeat their
 * heads octet for octet, and reading one costs more than the rest of a small request.
 *
 * - Owner: the decoder of one direction of a connection. It gives finished values in, and never changes what it gets.
 * - Key: the octets of the block, and the state of the table where the block refers to it.
 * - Bound: 8 blocks of at most 256 octets, each of a section of at most 4096 octets.
 * - End of an entry: all are dropped when there is no place for another. A block that refers to the table is of no use
 *   from the table's next change on.
 */

import { makeLasting } from '../../http/lasting-fields.ts';
import { type Fields, sectionBytes } from '../fields.ts';

/** Heads and trailers of a few calls. Larger ones cost more to keep than they save. */
const MAX_BLOCKS = 8;
const MAX_BLOCK_BYTES = 256;
/** A few octets can stand for much, through the table. Counted as the limits of sections are. */
const MAX_SECTION_BYTES = 4096;

/** What a whole block says. */
export interface DecodedFields {
  readonly kind: 'fields';
  /**
   * Name, value, name, value, …; every octet one char of the same code (latin1). They are unchecked. Once a block has
   * come again they are lasting: it gives the same array each time.
   */
  readonly fields: Fields;
  /** Names of fields that came never indexed, and must be passed on so (RFC 7541 §6.2.3). */
  readonly neverIndexed: readonly string[];
}

/** What a block says and does, each time that it comes. */
interface KnownBlock {
  readonly decoded: DecodedFields;
  /** Name, value, … of the entries that it adds to the table, in their order. It changes nothing else there. */
  readonly additions: readonly string[];
  /** The version of the table that this holds for; undefined where the block refers to no entry of it. */
  readonly refersTo: number | undefined;
}

/** The key of a block; undefined for one that is too large to be known. */
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

  /** @param known finished: nobody changes anything of it from here on. */
  keep(key: string, known: KnownBlock): void {
    if (sectionBytes(known.decoded.fields) > MAX_SECTION_BYTES) return;
    if (this.#blocks.size === MAX_BLOCKS) this.#blocks.clear();
    this.#blocks.set(key, known);
  }
}
