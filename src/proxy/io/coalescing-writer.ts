import type { Socket } from 'node:net';
import { BlockPool } from './byte-queue.ts';
import type { FailedWrite } from './sockets.ts';

/** Such strings are written without a request object or memory of their own. */
const TEXT_BYTES = 4096;

/** Holds one read, with its head and framing. */
const BLOCK_BYTES = 96 * 1024;

/** Enough for as many slow readers. */
const SPARE_BLOCKS = 32;

const BLOCKS = new BlockPool(BLOCK_BYTES, SPARE_BLOCKS);

/** So little waits for a slow peer in memory of its own size. */
const LITTLE_BYTES = 16 * 1024;

/**
 * Copies pieces, so that they leave in one write. As a rule nothing leaves before `flush`, and nothing is
 * held after it.
 */
export class CoalescingWriter {
  readonly #socket: Socket;
  readonly #failed: FailedWrite | undefined;
  /** Follows what is in the block. */
  #text = '';
  #block: Buffer | undefined;
  #used = 0;
  #anyLeft = false;

  /** @param failed if the socket stays open for reading. */
  constructor(socket: Socket, failed?: FailedWrite) {
    this.#socket = socket;
    this.#failed = failed;
  }

  /** The system took some since `beginMessage`. It refuses writes to a broken connection at once. */
  get anyLeft(): boolean {
    return this.#anyLeft;
  }

  beginMessage(): void {
    this.#anyLeft = false;
  }

  /** @param text one char an octet (latin1). */
  text(text: string): void {
    this.#text += text;
  }

  bytes(slice: Buffer): void {
    if (slice.length <= TEXT_BYTES && this.#block === undefined) {
      this.#text += slice.toString('latin1');
      return;
    }
    this.#moveText();
    if (slice.length > BLOCK_BYTES) {
      this.#writeBlock();
      this.#write(Buffer.from(slice));
      return;
    }
    const block = this.#blockFor(slice.length);
    slice.copy(block, this.#used);
    this.#used += slice.length;
  }

  /** False until the socket emits `drain`. */
  flush(): boolean {
    if (this.#block !== undefined) {
      this.#moveText();
      this.#writeBlock();
    } else if (this.#text !== '') {
      this.#writeText(this.#text);
      this.#text = '';
    }
    return !this.#socket.writableNeedDrain;
  }

  clear(): void {
    this.#text = '';
    if (this.#block !== undefined) BLOCKS.giveBack(this.#block);
    this.#block = undefined;
  }

  #moveText(): void {
    const text = this.#text;
    if (text === '') return;
    this.#text = '';
    if (text.length > BLOCK_BYTES) {
      this.#writeBlock();
      this.#writeText(text);
      return;
    }
    // This may begin another block.
    const block = this.#blockFor(text.length);
    this.#used += block.write(text, this.#used, 'latin1');
  }

  #blockFor(bytes: number): Buffer {
    if (this.#used + bytes > BLOCK_BYTES) this.#writeBlock();
    if (this.#block === undefined) {
      this.#block = BLOCKS.take();
      this.#used = 0;
    }
    return this.#block;
  }

  #writeBlock(): void {
    const block = this.#block;
    if (block === undefined) return;
    this.#block = undefined;
    const bytes = block.subarray(0, this.#used);
    this.#used = 0;
    if (bytes.length <= LITTLE_BYTES && this.#socket.writableLength > 0) {
      const own = Buffer.allocUnsafeSlow(bytes.length);
      bytes.copy(own);
      BLOCKS.giveBack(block);
      this.#write(own);
      return;
    }
    // Called also if the write fails.
    this.#write(bytes, () => BLOCKS.giveBack(block));
  }

  #writeText(text: string): void {
    this.#socket.write(text, 'latin1');
    this.#noteLeft();
  }

  #write(bytes: Buffer, onWritten?: () => void): void {
    this.#socket.write(bytes, onWritten);
    this.#noteLeft();
  }

  #noteLeft(): void {
    this.#anyLeft ||=
      this.#socket.errored === null && !this.#socket.destroyed && this.#failed?.happened !== true;
  }
}
