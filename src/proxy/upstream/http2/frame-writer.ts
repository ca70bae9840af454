import type { Socket } from 'node:net';
import type { FrameOutput } from '../../http2/frame-output.ts';
import type { FailedWrite } from '../../io/failed-write.ts';
import { GatheredWriter } from '../../io/gathered-writer.ts';
import type { CarriedStream } from './carried-stream.ts';

/** A payload up to this size is copied after the header of its frame; larger ones are written beside it. */
const SMALL_BYTES = 1024;

/**
 * Takes the frames of one connection to its socket: everything that requests, answers and windows write in one turn of
 * the event loop leaves in one write.
 */
export class FrameWriter {
  readonly #socket: Socket;
  readonly #output: FrameOutput;
  readonly #writer: GatheredWriter;
  readonly #onFlushed: () => void;
  #flushDue = false;
  /** Those whose request has been written since the last flush. */
  #unflushed: CarriedStream[] = [];

  /**
   * @param output where frames are written, and headers of DATA, whose payload is given to `payload`.
   * @param onFlushed is called when all that was written has been given to the socket.
   */
  constructor(socket: Socket, failed: FailedWrite, output: FrameOutput, onFlushed: () => void) {
    this.#socket = socket;
    this.#onFlushed = onFlushed;
    this.#output = output;
    this.#writer = new GatheredWriter(socket, failed);
  }

  /** Whether the socket takes more. */
  get takesMore(): boolean {
    return !this.#socket.writableNeedDrain;
  }

  /** The head of a request was written: its stream is told once some of that has left. */
  wrote(stream: CarriedStream): void {
    this.#unflushed.push(stream);
    this.flushSoon();
  }

  /** The payload for the DATA header that was written last. */
  payload(bytes: Buffer): void {
    if (bytes.length <= SMALL_BYTES) {
      this.#output.octets(bytes);
      return;
    }
    this.#writer.bytes(this.#output.take());
    this.#writer.bytes(bytes);
  }

  /** Sends what was written at the end of this turn of the event loop. */
  flushSoon(): void {
    if (this.#flushDue) return;
    this.#flushDue = true;
    setImmediate(() => this.flush());
  }

  /** The same if frames have been written. */
  flushFramesSoon(): void {
    if (this.#output.length > 0) this.flushSoon();
  }

  flush(): void {
    this.#flushDue = false;
    if (!this.#socket.writable) return;
    if (this.#output.length > 0) this.#writer.bytes(this.#output.take());
    this.#writer.flush();
    this.#tellLeft();
    this.#writer.beginMessage();
    this.#onFlushed();
  }

  /** Sends nothing more. What exceeds one block has left before the flush. */
  end(): void {
    this.#tellLeft();
    this.#writer.clear();
  }

  #tellLeft(): void {
    if (!this.#writer.anyLeft || this.#unflushed.length === 0) return;
    const unflushed = this.#unflushed;
    this.#unflushed = [];
    for (const stream of unflushed) stream.hasLeft();
  }
}
