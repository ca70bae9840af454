import type { Socket } from 'node:net';
import type { Asked } from '../../http2/answer-section.ts';
import type { ClientConnection, ClientStream } from '../../http2/client-connection.ts';
import { ErrorCode } from '../../http2/error-code.ts';
import type { FailedWrite } from '../../io/failed-write.ts';
import type { CarriedStream } from './carried-stream.ts';
import { FrameWriter } from './frame-writer.ts';
import { SendTurns } from './send-turns.ts';
import { UnreadBytes } from './unread-bytes.ts';

export type WireStream = ClientStream<CarriedStream>;

/**
 * The way out of one HTTP/2 connection, shared by its requests: everything from one turn of the event loop leaves in
 * one write, requests without room wait for their turn, and windows are given back as answers are passed on.
 */
export class UpstreamOutlet {
  readonly #codec: ClientConnection<CarriedStream>;
  readonly #writer: FrameWriter;
  readonly #turns = new SendTurns();
  readonly #unread: UnreadBytes;
  readonly #onReset: () => void;

  /**
   * @param onFlushed is called when all that was written has been given to the socket.
   * @param onRead is called when `awaitsReaders` is no longer true.
   * @param onReset is called when a stream has been reset.
   */
  constructor(
    socket: Socket,
    failed: FailedWrite,
    codec: ClientConnection<CarriedStream>,
    onFlushed: () => void,
    onRead: () => void,
    onReset: () => void,
  ) {
    this.#codec = codec;
    this.#writer = new FrameWriter(socket, failed, codec.output, onFlushed);
    this.#onReset = onReset;
    this.#unread = new UnreadBytes((bytes) => codec.consumeConnection(bytes), onRead);
  }

  /** Whether the socket takes more. */
  get takesMore(): boolean {
    return this.#writer.takesMore;
  }

  /** Whether something waits, and the window that all requests share lets nothing leave. */
  get windowShut(): boolean {
    return this.#codec.windowShut && this.#turns.any;
  }

  /** Whether apps hold as much unread as they may: nothing more comes on the connection until they have read. */
  get awaitsReaders(): boolean {
    return this.#unread.isFull;
  }

  /** The largest field section that the upstream takes, in octets as `sectionBytes` counts them. */
  get mostSectionBytes(): number {
    return this.#codec.peer.maxFieldSectionBytes;
  }

  /** Begins a request; undefined if the upstream no longer allows any. */
  request(
    stream: CarriedStream,
    fields: readonly string[],
    asked: Asked,
    endStream: boolean,
    neverIndexed?: readonly string[],
  ): WireStream | undefined {
    const wire = this.#codec.request(fields, asked, endStream, neverIndexed);
    if (wire === undefined) return undefined;
    wire.context = stream;
    this.#writer.wrote(stream);
    return wire;
  }

  /** How many octets of data windows and socket take, in one frame, now. */
  sendable(wire: WireStream): number {
    return this.takesMore ? this.#codec.sendable(wire) : 0;
  }

  /**
   * Sends one frame with as much of `bytes` as is `sendable`; says how much that is.
   * @param last whether nothing follows `bytes`.
   */
  send(wire: WireStream, bytes: Buffer, last: boolean): number {
    const count = Math.min(bytes.length, this.sendable(wire));
    if (count === 0) return 0;
    const whole = count === bytes.length;
    this.#codec.sendData(wire, count, last && whole);
    this.#writer.payload(whole ? bytes : bytes.subarray(0, count));
    return count;
  }

  /** Has `sendWaiting` called when windows, or the socket, take more. */
  wait(stream: CarriedStream): void {
    this.#turns.add(stream);
  }

  /** Undoes `wait`. */
  waitNoMore(stream: CarriedStream): void {
    this.#turns.remove(stream);
  }

  /** Undoes every `wait`. */
  nobodyWaits(): void {
    this.#turns.clear();
  }

  /** Lets waiting streams send, as far as there is room. */
  serveWaiting(): void {
    this.#turns.run(this);
  }

  /** Ends a request, with trailers where there are any. */
  end(wire: WireStream, trailers: readonly string[]): void {
    // No trailer is put in a table: which of them may be is no longer known (RFC 7541 §6.2.3).
    if (trailers.length > 0) this.#codec.sendFields(wire, trailers, true, trailers);
    else this.#codec.sendData(wire, 0, true);
  }

  /** Resets a stream that either side has not ended. */
  reset(wire: WireStream): void {
    const wasReset = this.#codec.reset(wire, ErrorCode.CANCEL);
    this.#writer.flushFramesSoon();
    if (wasReset) this.#onReset();
  }

  /** Octets of an answer have come, for the program to hold until `passedOn`. */
  came(bytes: number): void {
    this.#unread.came(bytes);
  }

  /** Octets of an answer have left the program, or are no longer wanted. */
  passedOn(wire: WireStream, bytes: number): void {
    this.#unread.left(bytes);
    this.#codec.consumeStream(wire, bytes);
    this.#writer.flushFramesSoon();
  }

  /** Sends what was written, together with what else is written in this turn of the event loop. */
  flushSoon(): void {
    this.#writer.flushSoon();
  }

  /** The same if frames have been written. */
  flushFramesSoon(): void {
    this.#writer.flushFramesSoon();
  }

  flush(): void {
    this.#writer.flush();
  }

  /** Sends nothing more. */
  close(): void {
    this.#writer.end();
  }
}
