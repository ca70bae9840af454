/**
 * Sequences of field blocks on one connection, for the differential fuzzer: heads that come again and again, some of them
 * nearly the same, with long ones between them, while the table changes its size.
 */

import type { FieldSectionLimits } from '../../../../../src/proxy/http2/hpack/decoder.ts';
import { DEFAULT_HEADER_TABLE_BYTES } from '../../../../../src/proxy/http2/settings.ts';
import type { Random } from '../../../http1/fuzz/random.ts';

const ENCODERS = ['go', 'python', 'nghttp2', 'writer'] as const;

/** Who writes the blocks: a library, or `BlockWriter`, which writes in all the ways that there are. */
export type Encoder = (typeof ENCODERS)[number];

type Field = readonly [name: string, value: string, never: boolean];

export interface Step {
  /** A SETTINGS_HEADER_TABLE_SIZE that the decoder's side has had acknowledged before this block. */
  readonly limit?: number;
  /** Sizes that the encoder gives its table before this block, in order; nghttp2 goes by the limit. */
  readonly sizes: readonly number[];
  readonly fields: readonly Field[];
  /** Without Huffman coding, where the library can be told. */
  readonly plain: boolean;
  /** Of the choices that `BlockWriter` has. */
  readonly seed: number;
  /** Of a change to the octets of the block. */
  readonly change?: number;
}

export interface Sequence {
  readonly encoder: Encoder;
  readonly limits: FieldSectionLimits;
  readonly steps: readonly Step[];
}

type Head = Pick<Step, 'fields' | 'plain' | 'seed'>;

const FIELDS: readonly (readonly [name: string, value: string])[] = [
  [':status', '200'],
  [':status', '418'],
  [':method', 'POST'],
  [':path', '/'],
  [':path', '/a.b.C/D'],
  [':authority', 'example.com:8080'],
  ['content-type', 'application/grpc'],
  ['content-type', 'application/proto'],
  ['grpc-status', '0'],
  ['grpc-encoding', 'identity'],
  ['grpc-accept-encoding', 'gzip'],
  ['te', 'trailers'],
  ['server', 'x'],
  ['accept-encoding', 'gzip, deflate'],
  ['content-length', '12'],
  ['cookie', 'a=b'],
  ['authorization', 'Bearer x'],
  ['x-empty', ''],
  ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'],
];
const NAMES = [
  'x',
  'etag',
  'set-cookie',
  'via',
  'user-agent',
  'grpc-timeout',
  'x-long-name-of-a-field',
  'age',
];
const TABLE_BYTES = [0, 40, 80, 150, 300, 600, 1000, 4096, 16_384];
/** nghttp2 by way of Node is a client, which sends requests alone. */
const REQUEST: readonly Field[] = [
  [':method', 'POST', false],
  [':scheme', 'http', false],
  [':authority', 'a', false],
  [':path', '/', false],
];

export function fuzzSequence(random: Random, encoders: readonly Encoder[] = ENCODERS): Sequence {
  const encoder = random.pick(encoders);
  const limits = random.chance(0.7)
    ? { sectionBytes: 1_000_000, sectionFields: 10_000 }
    : { sectionBytes: 200 + random.below(3000), sectionFields: 3 + random.below(15) };
  const speaker = new Speaker(random, encoder);
  const steps = Array.from({ length: 200 + random.below(200) }, (_, index) => speaker.step(index === 0));
  const changed = random.chance(0.2) && encoder !== 'nghttp2' ? 100 + random.below(100) : -1;
  return {
    encoder,
    limits,
    steps: legal(
      steps.map((step, index) => (index === changed ? { ...step, change: random.below(2 ** 31) } : step)),
      encoder,
    ),
  };
}

/** Steps without sizes above the limit of their time, and with one where the limit has gone below the size. */
export function legal(steps: readonly Step[], encoder: Encoder): Step[] {
  let limit = DEFAULT_HEADER_TABLE_BYTES;
  let size = DEFAULT_HEADER_TABLE_BYTES;
  return steps.map((step) => {
    limit = step.limit ?? limit;
    if (encoder === 'nghttp2') return { ...step, sizes: [] };
    // PyPI's hpack forgets an update by one to the same size.
    const sizes = [...new Set(step.sizes.map((bytes) => Math.min(bytes, limit)))];
    if (sizes.length === 0 && size > limit) sizes.push(limit);
    size = sizes.at(-1) ?? size;
    return { ...step, sizes };
  });
}

/** Name, value, name, value, …, as the codec has them. */
export function namesAndValues(fields: readonly Field[]): string[] {
  const flat: string[] = [];
  for (const [name, value] of fields) flat.push(name, value);
  return flat;
}

class Speaker {
  readonly #random: Random;
  readonly #encoder: Encoder;
  /** Heads that come again. */
  readonly #short: readonly Head[];
  readonly #long: readonly Head[];
  readonly #chances: {
    readonly long: number;
    readonly fresh: number;
    readonly near: number;
    readonly size: number;
  };
  readonly #first: Pick<Step, 'limit' | 'sizes'>;

  constructor(random: Random, encoder: Encoder) {
    this.#random = random;
    this.#encoder = encoder;
    this.#short = Array.from({ length: 2 + random.below(7) }, () => this.#shortHead());
    this.#long = Array.from({ length: 1 + random.below(3) }, () => this.#longHead());
    this.#chances = {
      long: random.pick([0.02, 0.1, 0.3, 0.5]),
      fresh: random.pick([0, 0.05, 0.3]),
      near: random.pick([0, 0.1]),
      size: random.pick([0, 0.01, 0.05]),
    };
    this.#first = random.chance(0.4) ? { sizes: [] } : this.#size();
  }

  step(first: boolean): Step {
    const random = this.#random;
    const table = first ? this.#first : random.chance(this.#chances.size) ? this.#size() : { sizes: [] };
    return { ...table, ...this.#head() };
  }

  /** Two sizes before one block only where the first empties the table: Go's decoder takes no others. */
  #size(): Pick<Step, 'limit' | 'sizes'> {
    const random = this.#random;
    const bytes = random.pick(TABLE_BYTES);
    if (this.#encoder === 'nghttp2') return { limit: bytes, sizes: [] };
    const sizes = bytes > 0 && random.chance(0.2) ? [0, bytes] : [bytes];
    return bytes > DEFAULT_HEADER_TABLE_BYTES || random.chance(0.3) ? { limit: bytes, sizes } : { sizes };
  }

  #head(): Head {
    const random = this.#random;
    const { long, fresh, near } = this.#chances;
    if (random.chance(long)) return random.chance(0.5) ? this.#longHead() : random.pick(this.#long);
    if (random.chance(fresh)) return this.#shortHead();
    const head = random.pick(this.#short);
    return random.chance(near) ? this.#nearly(head) : head;
  }

  /** The same head, but for one value, or written in another way. */
  #nearly(head: Head): Head {
    const random = this.#random;
    if (head.fields.length === 0 || random.chance(0.3)) return { ...head, seed: random.below(2 ** 31) };
    const at = random.below(head.fields.length);
    const fields = head.fields.map(
      ([name, value, never], index): Field =>
        index === at && !this.#isFixed(name) ? [name, this.#text(value.length), never] : [name, value, never],
    );
    return { ...head, fields };
  }

  #shortHead(): Head {
    const random = this.#random;
    // Go's encoder writes a table size update together with a field alone.
    const fewest = this.#encoder === 'writer' ? 0 : 1;
    return this.#headOf(Array.from({ length: fewest + random.below(4) }, () => this.#field()));
  }

  #longHead(): Head {
    const random = this.#random;
    const one = random.chance(0.4);
    const fields = Array.from({ length: one ? 1 : 4 + random.below(12) }, (): Field => {
      const bytes = one ? 300 + random.below(2000) : 20 + random.below(60);
      return [random.pick(NAMES), this.#text(bytes), random.chance(0.03)];
    });
    return this.#headOf([...fields, ...Array.from({ length: random.below(3) }, () => this.#field())]);
  }

  #headOf(fields: readonly Field[]): Head {
    const random = this.#random;
    const all =
      this.#encoder === 'nghttp2'
        ? [...REQUEST, ...fields.filter(([name]) => !name.startsWith(':'))]
        : fields;
    return { fields: all, plain: random.chance(0.3), seed: random.below(2 ** 31) };
  }

  #field(): Field {
    const random = this.#random;
    const [name, value] = random.chance(0.7)
      ? random.pick(FIELDS)
      : [random.pick(NAMES), this.#text(random.below(12))];
    return [name, value, random.chance(0.05)];
  }

  #isFixed(name: string): boolean {
    return this.#encoder === 'nghttp2' && (name.startsWith(':') || name === 'te');
  }

  #text(length: number): string {
    const random = this.#random;
    const oddity = this.#encoder === 'nghttp2' ? 0 : random.pick([0, 0, 0.2]);
    return String.fromCharCode(
      ...Array.from({ length }, () => (random.chance(oddity) ? random.below(256) : 97 + random.below(26))),
    );
  }
}
