/**
 * What clients and servers send on HTTP/2 connections, for the differential fuzzer: mostly legal frames from a grammar,
 * with one or two odd choices mixed in, of those that readers are known to disagree on. Most are short; some are long
 * conversations, in which heads come again and again, or nearly so, and what is odd comes late.
 */

import { Random } from '../../http1/fuzz/random.ts';
import { frame } from '../frames.ts';
import { BlockWriter, integer } from './block-writer.ts';

export type Sender = 'client' | 'server';

export interface FuzzCase {
  readonly sender: Sender;
  /** The methods of the client's requests that a server's frames answer, on streams 1, 3, … */
  readonly asked: readonly string[];
  /** One frame each, as a rule, without the preface. */
  readonly frames: readonly Buffer[];
  /** An odd choice was made, which a reader may refuse though others do not. */
  readonly odd: boolean;
}

type Field = readonly [name: string, value: string];
type Parts = readonly [type: number, flags: number, streamId: number, payload: Buffer];

const DATA = 0;
const HEADERS = 1;
const PRIORITY = 2;
const RST_STREAM = 3;
const SETTINGS = 4;
const PUSH_PROMISE = 5;
const PING = 6;
const GOAWAY = 7;
const WINDOW_UPDATE = 8;
const CONTINUATION = 9;

/** Ends every case: a reader that answers it has read all of it. */
export const LAST_PING = Buffer.from('finished');

const END_STREAM = 1;
const END_HEADERS = 4;
const PADDED = 8;
const PRIORITY_FLAG = 0x20;

/** A method of each kind whose answer is framed in a way of its own. */
const ASKED = ['GET', 'HEAD', 'POST'];

/** How often a case is a conversation, and what it has of requests and at least of steps. */
const CONVERSATIONS = 0.04;
const ASKED_IN_CONVERSATION = Array.from({ length: 80 }, (_, index) => (index % 2 === 0 ? 'GET' : 'POST'));
const CONVERSATION_STEPS = 200;

const METHODS = ['GET', 'POST', 'PUT', 'HEAD', 'OPTIONS', 'M-SEARCH'];
const ODD_METHODS = ['', 'get', 'G T', 'CONNECT', 'head', 'Connect', 'G\xe9T', 'X'.repeat(33), 'TRACE'];
const PATHS = ['/', '/a/b?c=d', '/index.html', '/%2e%2e/x', '//x'];
const ODD_PATHS = ['', '*', 'x', 'http://a/', '/a b', '/#f', '/\\', '/\xe9', '/\x7f', '?'];
const AUTHORITIES = ['a', 'a.b:80', 'example.com', '[::1]:8080', '127.0.0.1'];
const ODD_AUTHORITIES = ['', 'u@a', 'a b', 'a/b', 'a:b', 'a:', '[::1', 'a,b', 'a:99999', '\xe9'];
const SCHEMES = ['http', 'https'];
const ODD_SCHEMES = ['', 'HTTP', 'ftp', 'h ttp', '1'];
const STATUSES = ['200', '200', '404', '304', '204', '100', '103', '205', '500'];
const ODD_STATUSES = ['', '20', '2000', '099', '2x0', '101', ' 200', '200 OK', '600', '000'];

const FIELDS: readonly Field[] = [
  ['accept', '*/*'],
  ['user-agent', 'x/1.0 (y; z)'],
  ['x-empty', ''],
  ['x-tabs', 'a\tb'],
  ['x-latin', 'a\xe9\xff'],
  ['te', 'trailers'],
  ['cookie', 'a=b'],
  ['cookie', 'c="d, e"'],
  ['content-type', 'application/grpc'],
  ['grpc-timeout', '999926u'],
  ['x-bin', 'AAECAw=='],
];

const ODD_FIELDS: readonly Field[] = [
  ['Accept', '*/*'],
  ['x-Upper', 'a'],
  ['', 'a'],
  ['a b', 'a'],
  ['a:', 'a'],
  ['x(', 'a'],
  ['x\x7f', 'a'],
  ['x\xe9', 'a'],
  ['x\0', 'a'],
  ['x', 'a\r'],
  ['x', 'a\nb'],
  ['x', 'a\0b'],
  ['x', 'a\x7f'],
  ['x', ' a'],
  ['x', 'a '],
  ['x', '\ta'],
  ['x', ' '],
  ['connection', 'close'],
  ['connection', 'x'],
  ['keep-alive', 'timeout=5'],
  ['proxy-connection', 'close'],
  ['transfer-encoding', 'chunked'],
  ['upgrade', 'websocket'],
  ['te', 'gzip'],
  ['te', 'trailers, gzip'],
  ['te', 'TRAILERS'],
  ['te', ''],
  ['host', 'a'],
  ['host', 'example.com'],
  ['host', ''],
  ['content-length', '3'],
  ['content-length', '0'],
  ['content-length', '03'],
  ['content-length', '+3'],
  ['content-length', '3, 3'],
  ['content-length', ''],
  ['content-length', '18446744073709551619'],
  ['content-length', '9007199254740993'],
  ['content_length', '3'],
  [':path', '/'],
  [':method', 'GET'],
  [':status', '200'],
  [':foo', 'x'],
  [':', 'x'],
  [':protocol', 'websocket'],
  [':authority', 'a'],
  ['trailer', 'x'],
  ['expect', '100-continue'],
];

export function fuzzCase(random: Random): FuzzCase {
  const sender = random.chance(0.6) ? 'client' : 'server';
  const conversation = random.chance(CONVERSATIONS);
  const asked = conversation ? ASKED_IN_CONVERSATION : ASKED;
  const speaker = new Speaker(random, sender, asked, conversation);
  const frames = speaker.frames();
  return { sender, asked, frames, odd: speaker.wasOdd };
}

class Speaker {
  /** Whether an odd choice was made. */
  wasOdd = false;
  readonly #random: Random;
  readonly #sender: Sender;
  readonly #blocks: BlockWriter;
  readonly #frames: Buffer[] = [];
  /** Streams on which more may be said, and whether their head has been. */
  readonly #open = new Map<
    number,
    { readonly headed: boolean; readonly length: number | undefined; readonly tunnel?: boolean }
  >();
  readonly #conversation: boolean;
  /** Sections of a conversation that come again, by what they begin. */
  readonly #sections = new Map<string, (readonly Field[])[]>();
  #nextId = 1;
  #oddities: number;

  constructor(random: Random, sender: Sender, asked: readonly string[], conversation: boolean) {
    this.#random = random;
    this.#sender = sender;
    this.#blocks = new BlockWriter(random);
    this.#conversation = conversation;
    this.#oddities = conversation ? 0 : random.pick([0, 1, 1, 1, 2]);
    if (sender === 'client') return;
    for (const index of asked.keys()) this.#open.set(index * 2 + 1, { headed: false, length: undefined });
  }

  frames(): Buffer[] {
    const random = this.#random;
    this.#say(SETTINGS, 0, 0, this.#settings());
    const steps = this.#conversation ? CONVERSATION_STEPS + random.below(100) : 1 + random.below(9);
    for (let step = 0; step < steps; step++) {
      if (step === CONVERSATION_STEPS) this.#oddities = random.pick([0, 0, 1]);
      this.#step();
    }
    this.#say(PING, 0, 0, LAST_PING);
    return this.#frames;
  }

  /** A section as `make` gives it; in a conversation mostly one that came before. */
  #section(what: string, make: () => Field[]): readonly Field[] {
    if (!this.#conversation) return make();
    const known = this.#sections.get(what) ?? [];
    this.#sections.set(what, known);
    const random = this.#random;
    if (known.length > 0 && random.chance(0.7)) return random.pick(known);
    const section = make();
    if (random.chance(0.3)) section.push(['x-long', longText(random)]);
    if (known.length < 5) known.push(section);
    return section;
  }

  /** Whether this choice is to be an odd one. */
  #odd(probability = 0.15): boolean {
    if (this.#oddities === 0 || !this.#random.chance(probability)) return false;
    this.#oddities--;
    this.wasOdd = true;
    return true;
  }

  #step(): void {
    if (this.#odd()) {
      this.#say(...this.#oddFrame());
      return;
    }
    const kind = this.#random.below(20);
    if (kind < 8) this.#head();
    else if (kind < 13) this.#data();
    else if (kind < 15) this.#trailers();
    else if (kind === 15) this.#reset();
    else this.#say(...this.#legalFrame(kind));
  }

  #legalFrame(kind: number): Parts {
    switch (kind) {
      case 16:
        // Never as an acknowledgement: one that answers nothing is a fault to Node, though not to nghttp2.
        return [PING, 0, 0, Buffer.from('12345678')];
      case 17:
        return [WINDOW_UPDATE, 0, this.#anyId(0), number32(1 + this.#random.below(1000))];
      case 18: {
        const id = this.#anyId(7);
        return [PRIORITY, 0, id, Buffer.concat([number32(id + 2), Buffer.from([1])])];
      }
      default:
        return [0xbe, this.#random.below(256), this.#anyId(0), this.#octets(9)];
    }
  }

  #head(): void {
    if (this.#sender === 'client') {
      const id = this.#nextId;
      this.#nextId += this.#random.pick([2, 2, 2, 4]);
      const ended = this.#random.chance(0.4);
      const fields = this.#section('request', () => this.#request());
      const length = lengthOf(fields);
      this.#headers(id, fields, ended && (length === undefined || length === 0 || this.#odd(0.3)));
      if (!ended || (length !== undefined && length > 0)) {
        this.#open.set(id, { headed: true, length, tunnel: fields.some(([, value]) => value === 'CONNECT') });
      }
      return;
    }
    const id = this.#random.pick([...this.#open.keys(), 1]);
    const stream = this.#open.get(id);
    if (stream === undefined || stream.headed) return;
    const status = this.#odd(0.2) ? this.#random.pick(ODD_STATUSES) : this.#random.pick(STATUSES);
    const interim = status.startsWith('1');
    const fields = this.#section(status, () =>
      this.#withOthers([[':status', status]], interim || /^[23]0[45]$/.test(status)),
    );
    const length = lengthOf(fields);
    const ended = !interim && (this.#random.chance(0.3) || /^[23]04$/.test(status)) && (length ?? 0) === 0;
    this.#headers(id, fields, ended || (interim && this.#odd(0.1)));
    if (ended) this.#open.delete(id);
    else if (!interim) this.#open.set(id, { headed: true, length });
  }

  #request(): Field[] {
    const connect = this.#random.chance(0.05);
    const pseudo: Field[] = connect
      ? [
          [':method', 'CONNECT'],
          [':authority', 'a.b:443'],
        ]
      : [
          [':method', this.#odd(0.1) ? this.#random.pick(ODD_METHODS) : this.#random.pick(METHODS)],
          [':scheme', this.#odd(0.05) ? this.#random.pick(ODD_SCHEMES) : this.#random.pick(SCHEMES)],
          [
            ':authority',
            this.#odd(0.1) ? this.#random.pick(ODD_AUTHORITIES) : this.#random.pick(AUTHORITIES),
          ],
          [':path', this.#odd(0.1) ? this.#random.pick(ODD_PATHS) : this.#random.pick(PATHS)],
        ];
    if (this.#random.chance(0.2)) pseudo.reverse();
    if (this.#odd(0.05)) pseudo.splice(this.#random.below(pseudo.length), 1);
    if (this.#odd(0.05)) pseudo.push(this.#random.pick(pseudo.length > 0 ? pseudo : [[':path', '/']]));
    if (this.#random.chance(0.03)) pseudo.push([':protocol', 'websocket']);
    return this.#withOthers(pseudo, connect);
  }

  /** Adds fields, after those that are there unless an odd choice has one stand before them. */
  #withOthers(first: readonly Field[], bodiless: boolean): Field[] {
    const others: Field[] = [];
    for (let count = this.#random.below(4); count > 0; count--) others.push(this.#random.pick(FIELDS));
    if (!bodiless && this.#random.chance(0.15))
      others.push(['content-length', String(this.#random.below(6))]);
    if (this.#odd(0.2)) {
      const odd = this.#random.pick(ODD_FIELDS);
      if (!this.#isForgiven(odd, others)) others.splice(this.#random.below(others.length + 1), 0, odd);
    }
    return this.#odd(0.03) ? [...others, ...first] : [...first, ...others];
  }

  /** A length that an answer says twice is read once by the codec, as HTTP/1.1 has it, and refused by nghttp2. */
  #isForgiven([name, value]: Field, others: readonly Field[]): boolean {
    const repeats = (other: Field): boolean => other[0] === name && Number(other[1]) === Number(value);
    return this.#sender === 'server' && name === 'content-length' && others.some(repeats);
  }

  #data(): void {
    const id = this.#random.pick([...this.#open.keys(), this.#nextId - 2]);
    const stream = this.#open.get(id);
    if (stream === undefined || !stream.headed) return;
    const bytes = stream.length !== undefined && !this.#odd(0.2) ? stream.length : this.#random.below(12);
    const ended = stream.length !== undefined || this.#random.chance(0.4);
    const octets = Buffer.alloc(bytes, 'abcdef');
    const padded = this.#random.chance(0.2);
    const payload = padded ? Buffer.concat([Buffer.from([3]), octets, Buffer.alloc(3)]) : octets;
    this.#say(DATA, (padded ? PADDED : 0) | (ended ? END_STREAM : 0), id, payload);
    if (ended) this.#open.delete(id);
  }

  #trailers(): void {
    const id = this.#random.pick([...this.#open.keys(), 1]);
    const stream = this.#open.get(id);
    if (stream === undefined || !stream.headed || (stream.length ?? 0) > 0) return;
    // RFC 9113 §8.5 has none in tunnels, and other readers take them.
    if (stream.tunnel) this.wasOdd = true;
    const fields = this.#section('trailers', () => this.#withOthers([['grpc-status', '0']], true));
    this.#headers(id, fields, !this.#odd(0.1));
    this.#open.delete(id);
  }

  #reset(): void {
    const id = this.#random.pick([...this.#open.keys(), 1]);
    if (!this.#open.has(id)) return;
    // Never NO_ERROR: Node shows that as if the message had ended.
    this.#say(RST_STREAM, 0, id, number32(this.#random.pick([1, 8, 7, 99])));
    this.#open.delete(id);
  }

  #headers(id: number, fields: readonly Field[], endStream: boolean): void {
    const random = this.#random;
    let block = this.#block(fields);
    if (this.#odd(0.05)) block = this.#oddBlock(block);
    else if (random.chance(0.03)) block = Buffer.concat([this.#resized(), block]);
    const pieces = random.chance(0.2) ? 2 + random.below(2) : 1;
    for (let piece = 0; piece < pieces; piece++) {
      const size = Math.ceil(block.length / pieces);
      const octets = block.subarray(piece * size, (piece + 1) * size);
      const end = piece === pieces - 1 && !this.#odd(0.02) ? END_HEADERS : 0;
      if (piece > 0) {
        this.#say(CONTINUATION, end, this.#odd(0.02) ? id + 2 : id, octets);
        continue;
      }
      const padded = random.chance(0.1);
      const priority = random.chance(0.1);
      const flags =
        end | (endStream ? END_STREAM : 0) | (padded ? PADDED : 0) | (priority ? PRIORITY_FLAG : 0);
      const parent = this.#odd(0.1) ? id : random.pick([0, 0x80000000 + id + 20]);
      const before = [
        padded ? Buffer.from([2]) : '',
        priority ? Buffer.concat([number32(parent), Buffer.from([9])]) : '',
      ];
      const parts = [...before, octets, padded ? Buffer.alloc(2) : ''].map((part) => Buffer.from(part));
      this.#say(HEADERS, flags, id, Buffer.concat(parts));
    }
  }

  /** In a conversation often by octets that the same fields had before. */
  #block(fields: readonly Field[]): Buffer {
    if (!this.#conversation || this.#random.chance(0.5)) return this.#blocks.block(fields);
    return this.#blocks.block(fields, new Random(fields.join().length, 0), 'static');
  }

  #resized(): Buffer {
    return this.#blocks.resize(this.#conversation ? this.#random.pick([0, 100, 500, 4096]) : 4096);
  }

  #oddBlock(block: Buffer): Buffer {
    const random = this.#random;
    switch (random.below(7)) {
      case 0:
        return Buffer.concat([block, integer(0x80, 7, 62 + random.below(60))]);
      case 1:
        return Buffer.concat([block, Buffer.from([0x80])]);
      case 2:
        return block.subarray(0, random.below(block.length + 1));
      case 3:
        return Buffer.concat([block, integer(0x20, 5, random.below(5000))]);
      case 4:
        return Buffer.concat([integer(0x20, 5, random.pick([0, 100, 4096, 4097, 70_000])), block]);
      case 5:
        return Buffer.concat([block, Buffer.from('ffffffffff0f', 'hex')]);
      default: {
        const changed = Buffer.from(block);
        if (changed.length > 0) changed[random.below(changed.length)] = random.below(256);
        return changed;
      }
    }
  }

  #settings(): Buffer {
    const settings: Buffer[] = [];
    for (let count = this.#random.below(3); count > 0; count--) {
      const legal = [
        [1, this.#random.pick([0, 100, 4096, 65_536])],
        [3, 100],
        [4, this.#random.pick([0, 100, 65_535, 0x7fffffff])],
        [5, 16_384 + this.#random.below(1000)],
        [6, 100_000],
        [0x99, this.#random.below(1000)],
      ] as const;
      const odd = [
        [2, 2],
        [2, this.#sender === 'server' ? 1 : 3],
        [4, 0x80000000],
        [5, 1],
        [5, 0x1000000],
        [8, 2],
      ] as const;
      const [id, value] = this.#odd(0.05) ? this.#random.pick(odd) : this.#random.pick(legal);
      settings.push(Buffer.from([id >> 8, id & 255]), number32(value));
    }
    return Buffer.concat(settings);
  }

  /** A frame that is wrong where it stands, or may be. */
  #oddFrame(): Parts {
    const random = this.#random;
    const id = this.#anyId(0);
    switch (random.below(14)) {
      case 0:
        return [random.pick([0, 1, 2, 3, 4, 5, 8, 9]), random.below(256), id, this.#octets(12)];
      case 1:
        return [WINDOW_UPDATE, 0, id, number32(random.pick([0, 0x7fffffff, 0x80000000]))];
      case 2:
        return [PRIORITY, 0, id, Buffer.concat([number32(id), Buffer.from([1])])];
      case 3:
        return [PRIORITY, 0, id, this.#octets(8)];
      case 4:
        return [RST_STREAM, 0, id, this.#octets(6)];
      case 5:
        return [DATA, random.below(16), id, this.#octets(10)];
      case 6:
        return [HEADERS, END_HEADERS | random.below(2), id, this.#blocks.block(this.#request())];
      case 7:
        return [
          SETTINGS,
          random.below(2),
          random.pick([0, 0, id]),
          random.chance(0.5) ? this.#settings() : this.#octets(8),
        ];
      case 8:
        return [PING, 0, random.pick([0, 1]), this.#octets(10)];
      case 9:
        // Never a legal one: Node then reads no more.
        return random.chance(0.5) ? [GOAWAY, 0, 1, Buffer.alloc(8)] : [GOAWAY, 0, 0, this.#octets(8)];
      case 10:
        return [
          PUSH_PROMISE,
          END_HEADERS,
          id,
          Buffer.concat([number32(2), this.#blocks.block(this.#request())]),
        ];
      case 11:
        return [CONTINUATION, END_HEADERS, id, this.#octets(3)];
      case 12:
        return [DATA, 0, id, Buffer.alloc(16_385)];
      default:
        return [SETTINGS, 1, 0, Buffer.alloc(0)];
    }
  }

  /** A stream that is open, or one of those around, or 0 where the frame may be the connection's. */
  #anyId(otherwise: number): number {
    const random = this.#random;
    if (this.#oddities > 0 && random.chance(0.1)) {
      this.wasOdd = true;
      return random.below(12);
    }
    return random.pick([...this.#open.keys(), otherwise]);
  }

  #octets(most: number): Buffer {
    return Buffer.from(Array.from({ length: this.#random.below(most) }, () => this.#random.below(256)));
  }

  #say(type: number, flags: number, streamId: number, payload: Buffer): void {
    this.#frames.push(frame(type, flags, streamId, payload));
  }
}

function longText(random: Random): string {
  const length = random.pick([200, 300, 1000, 4000]);
  return Array.from({ length }, () => String.fromCharCode(97 + random.below(26))).join('');
}

function lengthOf(fields: readonly Field[]): number | undefined {
  const value = fields.find(([name]) => name === 'content-length')?.[1];
  return value === undefined || !/^\d{1,3}$/.test(value) ? undefined : Number(value);
}

function number32(value: number): Buffer {
  const octets = Buffer.alloc(4);
  octets.writeUInt32BE(value >>> 0);
  return octets;
}
