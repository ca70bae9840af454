import type { Socket } from 'node:net';

/** How a peer ended its side: FIN, or anything that is not a clean end. */
export type Ending = 'end' | 'reset';

/** What one socket has received, kept whole, read piece by piece, and awaited by event. Bytes are shown as latin1. */
export class ReceivedBytes {
  #storage = Buffer.allocUnsafe(4096);
  #length = 0;
  #position = 0;
  #count = 0;
  #discarding = false;
  #ending: Ending | undefined;
  #waiting: (() => void)[] = [];

  constructor(socket: Socket) {
    socket.on('data', (bytes: Buffer) => this.#append(bytes));
    socket.once('end', () => this.#finish('end'));
    socket.once('error', () => this.#finish('reset'));
    socket.once('close', () => this.#finish('reset'));
  }

  /** Everything received since the connection began, read or not. */
  get text(): string {
    return this.#storage.toString('latin1', 0, this.#length);
  }

  /** Bytes received, those that were discarded too. */
  get count(): number {
    return this.#count;
  }

  /** From now on bytes are only counted: for bodies too large to keep. */
  discard(): void {
    this.#discarding = true;
  }

  /** Reads up to and including `delimiter`. */
  through(delimiter: string): Promise<string> {
    return this.#until(`${JSON.stringify(delimiter)}`, () => {
      const unread = this.#storage.subarray(this.#position, this.#length);
      const at = unread.indexOf(delimiter, 0, 'latin1');
      if (at === -1) return undefined;
      this.#position += at + delimiter.length;
      return unread.toString('latin1', 0, at + delimiter.length);
    });
  }

  /** Reads exactly `size` bytes. */
  exactly(size: number): Promise<string> {
    return this.#until(`${size} bytes`, () => {
      if (this.#length - this.#position < size) return undefined;
      this.#position += size;
      return this.#storage.toString('latin1', this.#position - size, this.#position);
    });
  }

  /** Reads up to the peer's clean end; rejects when the connection broke instead. */
  async rest(): Promise<string> {
    if ((await this.ended()) === 'reset') throw new Error('the connection was reset before its end');
    const rest = this.#storage.toString('latin1', this.#position, this.#length);
    this.#position = this.#length;
    return rest;
  }

  /** Resolves when the peer has ended its side. */
  ended(): Promise<Ending> {
    return this.#until('the end', () => this.#ending);
  }

  /** Resolves when `count` bytes have come in all. */
  reached(count: number): Promise<true> {
    return this.#until(`${count} bytes in all`, () => (this.#count >= count ? true : undefined));
  }

  /** Resolves when `text` has come, wherever it stands. */
  contains(text: string): Promise<true> {
    return this.#until(JSON.stringify(text), () => (this.text.includes(text) ? true : undefined));
  }

  /** Resolves when a byte that was not read yet is there, or the peer has ended. */
  async available(): Promise<boolean> {
    const state = await this.#until('a byte', () =>
      this.#length > this.#position ? 'bytes' : (this.#ending ?? undefined),
    );
    return state === 'bytes';
  }

  async #until<T>(what: string, attempt: () => T | undefined): Promise<T> {
    for (;;) {
      const value = attempt();
      if (value !== undefined) return value;
      if (this.#ending !== undefined) {
        const unread = this.#storage.toString('latin1', this.#position, this.#length).slice(0, 2000);
        throw new Error(`${this.#ending} while waiting for ${what}; unread: ${JSON.stringify(unread)}`);
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  #append(bytes: Buffer): void {
    this.#count += bytes.length;
    if (!this.#discarding) {
      if (this.#length + bytes.length > this.#storage.length) {
        const larger = Buffer.allocUnsafe((this.#length + bytes.length) * 2);
        this.#storage.copy(larger, 0, 0, this.#length);
        this.#storage = larger;
      }
      bytes.copy(this.#storage, this.#length);
      this.#length += bytes.length;
    }
    this.#wake();
  }

  #finish(ending: Ending): void {
    this.#ending ??= ending;
    this.#wake();
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }
}
