import type { Socket } from 'node:net';
import type { ProxyErrorCode, SidecarError } from '../../../platform/errors.ts';
import type { Fields } from '../../http/fields.ts';
import type { ClientConnection, ClientStream } from '../../http2/client-connection.ts';
import type { StreamError } from '../../http2/connection-output.ts';
import { ErrorCode } from '../../http2/errors.ts';
import type { RequestKind, ResponseSection } from '../../http2/messages.ts';
import { CoalescingWriter } from '../../io/coalescing-writer.ts';
import { type Member, RoundRobin } from '../../io/collections.ts';
import type { FailedWrite } from '../../io/sockets.ts';

/** A request on a connection. Buffers are valid until the call returns. */
export interface CarriedStream extends Member {
  /** When `tooLate` is to be called, on the monotonic clock. */
  readonly dueAtMs: number;
  /** The system has taken some of the request. */
  hasLeft(): void;
  /** The answer may be an interim one. */
  answerCame(answer: ResponseSection, endStream: boolean, neverIndexed: readonly string[]): void;
  /** The piece is empty only with `endStream`. */
  dataCame(data: Buffer, endStream: boolean): void;
  trailersCame(fields: Fields): void;
  pieceEnded(nowMs: number): void;
  brokenOff(how: StreamError): void;
  /** @param byPeer false if a bound or rule of the sidecar ended it. */
  connectionFailed(error: SidecarError<ProxyErrorCode>, byPeer: boolean): void;
  /** Sends one frame of what waits. */
  sendWaiting(): 'stuck' | 'more' | 'done';
  tooLate(): void;
}

export type WireStream = ClientStream<CarriedStream>;

/** Such payloads are copied after their header; larger ones are written beside it. */
const SMALL_BYTES = 1024;

/** What slow apps may leave unread before the connection stops. */
const MAX_UNREAD_BYTES = 8 * 1024 * 1024;

/**
 * Gathers what requests write in a turn of the event loop into one write. Requests without room take turns.
 */
export class UpstreamOutlet {
  readonly #socket: Socket;
  readonly #codec: ClientConnection<CarriedStream>;
  readonly #writer: CoalescingWriter;
  readonly #turns = new SendTurns();
  readonly #unread: ConnectionCredit;
  readonly #onFlushed: () => void;
  readonly #onReset: () => void;
  #flushDue = false;
  /** Streams with something written since the last flush. */
  #unflushed: CarriedStream[] = [];

  /**
   * @param onFlushed all that was written is in the socket.
   * @param onRead `awaitsReaders` has become false.
   * @param onReset a stream has been reset.
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
    this.#writer = new CoalescingWriter(socket, failed);
    this.#onFlushed = onFlushed;
    this.#onReset = onReset;
    this.#unread = new ConnectionCredit((bytes) => codec.consumeConnection(bytes), onRead);
  }

  get takesMore(): boolean {
    return !this.#socket.writableNeedDrain;
  }

  /** Whether something waits for the connection's window. */
  get windowExhausted(): boolean {
    return this.#codec.windowExhausted && this.#turns.any;
  }

  /** Nothing more comes until apps have read. */
  get awaitsReaders(): boolean {
    return this.#unread.isFull;
  }

  /** Octets as `sectionBytes` counts them. */
  get mostSectionBytes(): number {
    return this.#codec.peer.maxFieldSectionBytes;
  }

  /** Undefined if the upstream allows no further request. */
  request(
    stream: CarriedStream,
    fields: readonly string[],
    asked: RequestKind,
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

  /** Octets that can leave in one frame now. */
  sendable(wire: WireStream): number {
    return this.takesMore ? this.#codec.sendable(wire) : 0;
  }

  /**
   * Says how many octets one frame took.
   * @param last nothing follows `bytes`.
   */
  send(wire: WireStream, bytes: Buffer, last: boolean): number {
    const count = Math.min(bytes.length, this.sendable(wire));
    if (count === 0) return 0;
    const whole = count === bytes.length;
    this.#codec.sendData(wire, count, last && whole);
    this.#payload(whole ? bytes : bytes.subarray(0, count));
    return count;
  }

  /** Once windows or socket take more, `sendWaiting` is called. */
  wait(stream: CarriedStream): void {
    this.#turns.add(stream);
  }

  waitNoMore(stream: CarriedStream): void {
    this.#turns.remove(stream);
  }

  nobodyWaits(): void {
    this.#turns.clear();
  }

  serveWaiting(): void {
    this.#turns.run(this);
  }

  end(wire: WireStream, trailers: readonly string[]): void {
    // It is no longer known which may be indexed (RFC 7541 §6.2.3).
    if (trailers.length > 0) this.#codec.sendFields(wire, trailers, true, trailers);
    else this.#codec.sendData(wire, 0, true);
  }

  reset(wire: WireStream): void {
    const wasReset = this.#codec.reset(wire, ErrorCode.CANCEL);
    this.flushFramesSoon();
    if (wasReset) this.#onReset();
  }

  /** The program holds these octets until `passedOn`. */
  came(bytes: number): void {
    this.#unread.came(bytes);
  }

  /** These octets were passed to the app, or are not wanted. */
  passedOn(wire: WireStream, bytes: number): void {
    this.#unread.left(bytes);
    this.#codec.consumeStream(wire, bytes);
    this.flushFramesSoon();
  }

  /** Sends at the end of this turn of the event loop. */
  flushSoon(): void {
    if (this.#flushDue) return;
    this.#flushDue = true;
    setImmediate(() => this.flush());
  }

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

  /** What exceeds one block has left before the flush. */
  close(): void {
    this.#tellLeft();
    this.#writer.clear();
  }

  /** Follows the header of its DATA frame. */
  #payload(bytes: Buffer): void {
    const { output } = this.#codec;
    if (bytes.length <= SMALL_BYTES) {
      output.octets(bytes);
      return;
    }
    this.#writer.bytes(output.take());
    this.#writer.bytes(bytes);
  }

  #tellLeft(): void {
    if (!this.#writer.anyLeft || this.#unflushed.length === 0) return;
    const unflushed = this.#unflushed;
    this.#unflushed = [];
    for (const stream of unflushed) stream.hasLeft();
  }
}

export class SendTurns {
  readonly #waiting = new RoundRobin<CarriedStream>();
  /** They had their turn in vain in this run. */
  readonly #stuck = new RoundRobin<CarriedStream>();

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

  /** Each stream sends one frame in its turn. */
  run(socket: { readonly takesMore: boolean }): void {
    while (socket.takesMore) {
      const stream = this.#waiting.next();
      if (stream === undefined) break;
      const progress = stream.sendWaiting();
      if (progress === 'more') this.#waiting.add(stream);
      else if (progress === 'stuck') this.#stuck.add(stream);
    }
    for (const stream of this.#stuck.all()) this.#waiting.add(stream);
    this.#stuck.clear();
  }
}

/**
 * What apps have not read of a connection. Up to a bound the connection's window is given back at once, so
 * that a slow app stops only its own stream. Beyond it the window waits for readers, and further requests
 * should use other connections.
 */
export class ConnectionCredit {
  readonly #giveBack: (bytes: number) => void;
  readonly #most: number;
  readonly #onRoom: () => void;
  #unread = 0;
  #owed = 0;

  /** @param onRoom `isFull` has become false. */
  constructor(giveBack: (bytes: number) => void, onRoom: () => void, most = MAX_UNREAD_BYTES) {
    this.#giveBack = giveBack;
    this.#onRoom = onRoom;
    this.#most = most;
  }

  /** If so, the window waits until something has left. */
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
