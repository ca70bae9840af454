import type { Message } from '../message.ts';

export interface Http1ReaderOptions {
  /** @returns whether a body may follow, whatever the fields say. */
  onHead(message: Message): boolean;
  /** Called for informational answers, too, right after `onHead`. */
  onComplete(message: Message): void;
}

type Framing =
  | { readonly kind: 'length'; rest: number }
  | { readonly kind: 'chunked'; state: 'data' | 'size' | 'trailers'; rest: number }
  | { readonly kind: 'close' };

/**
 * Reads HTTP/1.1 messages, one after the other, strictly: what the data path reads them by is not used.
 * @throws {Error} at what is none.
 */
export class Http1Reader {
  readonly #kind: 'answers' | 'requests';
  readonly #options: Http1ReaderOptions;
  #rest: Buffer = Buffer.alloc(0);
  #message: Message | undefined;
  #framing: Framing | undefined;

  constructor(kind: 'answers' | 'requests', options: Http1ReaderOptions) {
    this.#kind = kind;
    this.#options = options;
  }

  /** Whether the last message is not whole. */
  get amidst(): boolean {
    return this.#message !== undefined || this.#rest.length > 0;
  }

  push(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    while (this.#step());
  }

  /** The peer has ended in peace: what is delimited by that is whole. */
  end(): void {
    if (this.#framing?.kind === 'close') this.#complete();
  }

  #step(): boolean {
    const framing = this.#framing;
    if (this.#message === undefined || framing === undefined) return this.#readHead();
    switch (framing.kind) {
      case 'close':
        this.#takeBody(this.#rest.length);
        return false;
      case 'length':
        framing.rest -= this.#takeBody(framing.rest);
        if (framing.rest > 0) return false;
        this.#complete();
        return true;
      case 'chunked':
        return this.#readChunk(framing);
    }
  }

  #readHead(): boolean {
    const end = this.#rest.indexOf('\r\n\r\n');
    if (end === -1) return false;
    const [startLine = '', ...lines] = this.#take(end + 4)
      .toString('latin1')
      .slice(0, -4)
      .split('\r\n');
    const pattern = this.#kind === 'answers' ? /^HTTP\/1\.1 \d{3} / : /^[A-Z]+ \S+ HTTP\/1\.1$/;
    if (!pattern.test(startLine))
      throw new Error(`no start line of ${this.#kind}: ${startLine.slice(0, 80)}`);
    const fields = new Map<string, string>();
    for (const line of lines) {
      const [, name, value] = /^([!-9;-~]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? [];
      if (name === undefined || value === undefined) throw new Error(`no field line: ${line.slice(0, 80)}`);
      const known = fields.get(name.toLowerCase());
      fields.set(name.toLowerCase(), known === undefined ? value : `${known}, ${value}`);
    }
    const message: Message = { startLine, fields, body: [], bodyBytes: 0 };
    this.#message = message;
    this.#framing = this.#options.onHead(message) ? this.#framingOf(fields) : { kind: 'length', rest: 0 };
    return true;
  }

  #framingOf(fields: ReadonlyMap<string, string>): Framing {
    const length = fields.get('content-length');
    if (fields.has('transfer-encoding')) {
      if (length !== undefined) throw new Error('a message has both framings');
      if (fields.get('transfer-encoding') !== 'chunked') throw new Error('a transfer coding is not chunked');
      return { kind: 'chunked', state: 'size', rest: 0 };
    }
    if (length !== undefined) {
      if (!/^\d+$/.test(length)) throw new Error(`a content-length is ${length}`);
      return { kind: 'length', rest: Number(length) };
    }
    return this.#kind === 'answers' ? { kind: 'close' } : { kind: 'length', rest: 0 };
  }

  #readChunk(framing: Framing & { kind: 'chunked' }): boolean {
    if (framing.state === 'data') {
      if (framing.rest > 2) framing.rest -= this.#takeBody(framing.rest - 2);
      if (framing.rest > 2 || this.#rest.length < 2) return false;
      if (this.#take(2).toString('latin1') !== '\r\n') throw new Error('a chunk is longer than it says');
      framing.state = 'size';
      return true;
    }
    const end = this.#rest.indexOf('\r\n');
    if (end === -1) return false;
    const line = this.#take(end + 2)
      .toString('latin1')
      .slice(0, -2);
    if (framing.state === 'trailers') {
      if (line === '') this.#complete();
      return true;
    }
    if (!/^[0-9a-f]+$/i.test(line)) throw new Error(`a chunk size is ${line.slice(0, 80)}`);
    const size = Number.parseInt(line, 16);
    framing.state = size === 0 ? 'trailers' : 'data';
    framing.rest = size + 2;
    return true;
  }

  #takeBody(most: number): number {
    const taken = this.#take(Math.min(most, this.#rest.length));
    if (taken.length > 0) this.#message?.body.push(taken);
    if (this.#message !== undefined) this.#message.bodyBytes += taken.length;
    return taken.length;
  }

  #take(length: number): Buffer {
    const taken = this.#rest.subarray(0, length);
    this.#rest = this.#rest.subarray(length);
    return taken;
  }

  #complete(): void {
    const message = this.#message as Message;
    this.#message = undefined;
    this.#framing = undefined;
    this.#options.onComplete(message);
  }
}
