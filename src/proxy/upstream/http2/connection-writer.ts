import type { Socket } from 'node:net';
import type { ProxyErrorCode, SidecarError } from '../../../platform/errors.ts';
import type { Fields } from '../../http/fields.ts';
import type { ClientConnection, ClientStream } from '../../http2/client-connection.ts';
import type { Broken } from '../../http2/connection-output.ts';
import { ErrorCode } from '../../http2/errors.ts';
import type { AnswerSection, Asked } from '../../http2/messages.ts';
import { type Member, Turns } from '../../io/collections.ts';
import { GatheredWriter } from '../../io/gathered-writer.ts';
import type { FailedWrite } from '../../io/sockets.ts';

/** What a connection tells a request on it. Buffers are valid until the call returns. */
export interface CarriedStream extends Member {
  /** On the monotonic clock: when `tooLate` is to be called. */
  readonly dueAtMs: number;
  /** The system has taken some of the request. */
  hasLeft(): void;
  /** An interim answer has come, or the final one. */
  answerCame(answer: AnswerSection, endStream: boolean, neverIndexed: readonly string[]): void;
  /** A piece of the answer, empty only with `endStream`. */
  dataCame(data: Buffer, endStream: boolean): void;
  /** Trailers, and with them the end. */
  trailersCame(fields: Fields): void;
  /** Everything that came in one piece has been passed. */
  pieceEnded(nowMs: number): void;
  /** The stream was broken off. */
  brokenOff(how: Broken): void;
  /** @param byPeer whether the upstream or the network ended it, rather than a bound or a rule of the sidecar. */
  connectionFailed(error: SidecarError<ProxyErrorCode>, byPeer: boolean): void;
  /** Sends one frame of what waits; says whether more may follow, or nothing could be sent. */
  sendWaiting(): 'stuck' | 'more' | 'done';
  tooLate(): void;
}

export type WireStream = ClientStream<CarriedStream>;

/** A payload up to this size is copied after the header of its frame; larger ones are written beside it. */
const SMALL_BYTES = 1024;

/**
 * How much of one connection's answers slow apps may leave unread, all together, before the connection itself stops:
 * until then no app holds up another.
 */
const MAX_UNREAD_BYTES = 8 * 1024 * 1024;

/**
 * The way out of one HTTP/2 connection, shared by its requests: everything from one turn of the event loop leaves in
 * one write, requests without room wait for their turn, and windows are given back as answers are passed on.
 */
export class UpstreamOutlet {
  readonly #socket: Socket;
  readonly #codec: ClientConnection<CarriedStream>;
  readonly #writer: GatheredWriter;
  readonly #turns = new SendTurns();
  readonly #unread: UnreadBytes;
  readonly #onFlushed: () => void;
  readonly #onReset: () => void;
  #flushDue = false;
  /** Those whose request has been written since the last flush. */
  #unflushed: CarriedStream[] = [];

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
    this.#socket = socket;
    this.#codec = codec;
    this.#writer = new GatheredWriter(socket, failed);
    this.#onFlushed = onFlushed;
    this.#onReset = onReset;
    this.#unread = new UnreadBytes((bytes) => codec.consumeConnection(bytes), onRead);
  }

  /** Whether the socket takes more. */
  get takesMore(): boolean {
    return !this.#socket.writableNeedDrain;
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
    this.#unflushed.push(stream);
    this.flushSoon();
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
    this.#payload(whole ? bytes : bytes.subarray(0, count));
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
    this.flushFramesSoon();
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
    this.flushFramesSoon();
  }

  /** Sends what was written, together with what else is written in this turn of the event loop. */
  flushSoon(): void {
    if (this.#flushDue) return;
    this.#flushDue = true;
    setImmediate(() => this.flush());
  }

  /** The same if frames have been written. */
  flushFramesSoon(): void {
    if (this.#codec.output.length > 0) this.flushSoon();
  }

  flush(): void {
    this.#flushDue = false;
    if (!this.#socket.writable) return;
    const { output } = this.#codec;
    if (output.length > 0) this.#writer.bytes(output.take());
    this.#writer.flush();
    this.#tellLeft();
    this.#writer.beginMessage();
    this.#onFlushed();
  }

  /** Sends nothing more. What exceeds one block has left before the flush. */
  close(): void {
    this.#tellLeft();
    this.#writer.clear();
  }

  /** The payload for the DATA header that was written last. */
  #payload(bytes: Buffer): void {
    const { output } = this.#codec;
    if (bytes.length <= SMALL_BYTES) {
      output.octets(bytes);
      return;
    }
    this.#writer.bytes(output.take());
    this.#writer.bytes(bytes);
  }

  /** Tells requests that some of what holds their heads has left. */
  #tellLeft(): void {
    if (!this.#writer.anyLeft || this.#unflushed.length === 0) return;
    const unflushed = this.#unflushed;
    this.#unflushed = [];
    for (const stream of unflushed) stream.hasLeft();
  }
}

/** Streams of one connection that have something to send which its windows, or its socket, did not take. */
export class SendTurns {
  readonly #waiting = new Turns<CarriedStream>();
  /** Those that have had their turn in vain: they wait for the next run. */
  readonly #stuck = new Turns<CarriedStream>();

  get any(): boolean {
    return this.#waiting.any;
  }

  add(stream: CarriedStream): void {
    this.#waiting.add(stream);
  }

  remove(stream: CarriedStream): void {
    this.#waiting.delete(stream);
    this.#stuck.delete(stream);
  }

  clear(): void {
    this.#waiting.clear();
    this.#stuck.clear();
  }

  /** Lets them send, one frame each in turn, for as long as any can. */
  run(socket: { readonly takesMore: boolean }): void {
    while (socket.takesMore) {
      const stream = this.#waiting.next();
      if (stream === undefined) break;
      const progress = stream.sendWaiting();
      // Added behind the others, it comes round again.
      if (progress === 'more') this.#waiting.add(stream);
      else if (progress === 'stuck') this.#stuck.add(stream);
    }
    for (const stream of this.#stuck.all()) this.#waiting.add(stream);
    this.#stuck.clear();
  }
}

/**
 * What has come on a connection and has not been read by its apps. Up to a bound the connection's window is given back
 * as soon as something comes, so that a slow app stops only its own answer, by its stream's window; beyond that bound
 * only once something has left, and meanwhile no further request belongs on the connection.
 */
export class UnreadBytes {
  readonly #giveBack: (bytes: number) => void;
  readonly #most: number;
  readonly #onRoom: () => void;
  #unread = 0;
  #owed = 0;

  /**
   * @param giveBack to the window of the connection.
   * @param onRoom is called when `isFull` is no longer true.
   */
  constructor(giveBack: (bytes: number) => void, onRoom: () => void, most = MAX_UNREAD_BYTES) {
    this.#giveBack = giveBack;
    this.#onRoom = onRoom;
    this.#most = most;
  }

  /** Whether the connection's window is not given back until something has left. */
  get isFull(): boolean {
    return this.#unread > this.#most;
  }

  came(bytes: number): void {
    this.#unread += bytes;
    this.#owed += bytes;
    this.#pay();
  }

  left(bytes: number): void {
    const wasFull = this.isFull;
    this.#unread -= bytes;
    this.#pay();
    if (wasFull && !this.isFull) this.#onRoom();
  }

  #pay(): void {
    if (this.#owed === 0 || this.isFull) return;
    const bytes = this.#owed;
    this.#owed = 0;
    this.#giveBack(bytes);
  }
}
