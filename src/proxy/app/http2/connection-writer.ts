import type { Socket } from 'node:net';
import type { Clock } from '../../../platform/time/clock.ts';
import type { Fields } from '../../http/fields.ts';
import type { ErrorCode } from '../../http2/errors.ts';
import type { ServerConnection, ServerStream } from '../../http2/server-connection.ts';
import { Turns } from '../../io/collections.ts';
import { Deadline } from '../../io/deadline.ts';
import { GatheredWriter } from '../../io/gathered-writer.ts';
import type { Carrier } from '../connection.ts';

/** What is gathered leaves at once from this size on. */
const GATHERED_BYTES = 64 * 1024;

/** Data up to this size is copied after the header of its frame; larger pieces are written beside it. */
const SMALL_BYTES = 1024;

/** An app with more unread than this is not read any more: answers to what it asks, data apart, would pile up. */
const MAX_UNREAD_BYTES = 256 * 1024;

/** An answer for which there was no room. */
export interface WaitingAnswer {
  /** Sends one frame if there is one and it is allowed; says whether it did. */
  step(): boolean;
  /** There was room: tells whoever waits, if nothing waits any more. */
  settle(): void;
  /** The connection is gone. */
  dispose(): void;
}

/**
 * The way out of one HTTP/2 connection, shared by its streams: everything from one turn of the event loop leaves in one
 * write, and answers without room wait for their turn.
 */
export class Http2Outlet<T> {
  /** Runs what a timer, or the end of a turn, triggers: if it throws, only this connection is lost. */
  readonly guarded: Carrier['guarded'];
  readonly #socket: Socket;
  readonly #codec: ServerConnection<T>;
  readonly #writer: GatheredWriter;
  /** Answers that wait for room; those that have waited longest come first. */
  readonly #waiting = new Turns<WaitingAnswer>();
  readonly #leaving: LeavingAnswers;
  #gatheredBytes = 0;
  #flushIsDue = false;

  constructor(carrier: Carrier, codec: ServerConnection<T>, clock: Clock) {
    const { socket } = carrier;
    this.guarded = (act) => carrier.guarded(act);
    this.#socket = socket;
    this.#codec = codec;
    this.#leaving = new LeavingAnswers(socket, clock, this.guarded);
    this.#writer = new GatheredWriter(socket);
  }

  /** What answers hold that have been written, and not read by the app. */
  get heldBytes(): number {
    return this.#leaving.heldBytes;
  }

  /** Whether the system takes more of what is written. */
  get room(): boolean {
    return !this.#socket.writableNeedDrain;
  }

  /** How many octets of data may be sent on a stream, in one frame, now. */
  sendable(stream: ServerStream<T>): number {
    return this.#codec.sendable(stream);
  }

  /** @param neverIndexed names of fields that no table on the way may hold (RFC 7541 §6.2.3). */
  sendFields(
    stream: ServerStream<T>,
    fields: Fields,
    endStream: boolean,
    neverIndexed?: readonly string[],
  ): void {
    this.#codec.sendFields(stream, fields, endStream, neverIndexed);
    this.flushSoon();
  }

  /** Sends at most what is `sendable`. The octets are copied by the time this returns. */
  sendData(stream: ServerStream<T>, data: Buffer, endStream: boolean): void {
    this.#codec.sendData(stream, data.length, endStream);
    const { output } = this.#codec;
    if (data.length <= SMALL_BYTES) output.octets(data);
    else {
      this.#writer.bytes(output.take());
      this.#writer.bytes(data);
    }
    this.#gatheredBytes += data.length;
    if (this.#gatheredBytes >= GATHERED_BYTES) this.flush();
    else this.flushSoon();
  }

  /** Octets of a body have left this program: as many more may come. */
  consume(stream: ServerStream<T>, bytes: number): void {
    if (bytes === 0) return;
    this.#codec.consume(stream, bytes);
    this.flushSoon();
  }

  reset(stream: ServerStream<T>, code: ErrorCode): void {
    this.#codec.reset(stream, code);
    this.flushSoon();
  }

  /** A stream has ended for which an upstream was asked. */
  wasUseful(): void {
    this.#codec.wasUseful();
  }

  /** The last frame of an answer has been sent: calls `left` once that has left the program. */
  leaves(answer: LeavingAnswer): void {
    this.#leaving.add(answer);
    this.flushSoon();
  }

  /** Calls `step` as soon as there is room in the connection's window and socket, in turn with others, then `settle`. */
  waitForRoom(sender: WaitingAnswer): void {
    this.#waiting.add(sender);
  }

  waitNoMore(sender: WaitingAnswer): void {
    this.#waiting.delete(sender);
  }

  /** There may be room: every answer that waits sends a frame in its turn, as long as there is. */
  serveWaiting(): void {
    if (!this.#waiting.any) return;
    for (let any = true; any && this.room; ) {
      any = false;
      for (const sender of this.#waiting.all()) {
        if (!this.room) break;
        if (!this.#waiting.goBehind(sender)) continue;
        if (sender.step()) any = true;
        else sender.settle();
      }
    }
    this.flush();
  }

  /** Sends what was gathered. */
  flush(): void {
    const socket = this.#socket;
    if (socket.destroyed || socket.writableEnded) {
      this.#leaving.dispose();
      return;
    }
    const { output } = this.#codec;
    if (output.length > 0) this.#writer.bytes(output.take());
    this.#gatheredBytes = 0;
    this.#writer.flush();
    this.#leaving.flushed();
    if (socket.writableLength > MAX_UNREAD_BYTES) socket.pause();
  }

  /** Flushes once this turn of the event loop has read all its sockets. */
  flushSoon(): void {
    if (this.#flushIsDue) return;
    this.#flushIsDue = true;
    setImmediate(() => {
      this.#flushIsDue = false;
      this.guarded(() => this.flush());
    });
  }

  /** Disposes of everything that waits. */
  dispose(): void {
    for (const sender of this.#waiting.all()) sender.dispose();
    this.#leaving.dispose();
  }
}

/** An answer whose last frame has been written. */
export interface LeavingAnswer {
  /** How long the app may take to read it, in ms. */
  readonly patienceMs: number;
  /** What it holds meanwhile. */
  readonly heldBytes: number;
  /** The system has taken all of it, will take no more of it, or has had the time for that. */
  left(): void;
}

/** Answers that were flushed together, and wait for the system to take them. */
interface Batch {
  readonly answers: readonly LeavingAnswer[];
  readonly untilMs: number;
}

/**
 * The answers of one connection that have been written whole and not yet left: if the app does not read, a socket takes
 * what it is given long before the system does.
 */
class LeavingAnswers {
  readonly #socket: Socket;
  readonly #clock: Clock;
  readonly #guarded: (act: () => void) => void;
  readonly #deadline: Deadline;
  /** Those that are not flushed yet. */
  #written: LeavingAnswer[] = [];
  readonly #batches = new Turns<Batch>();

  constructor(socket: Socket, clock: Clock, guarded: (act: () => void) => void) {
    this.#socket = socket;
    this.#clock = clock;
    this.#guarded = guarded;
    this.#deadline = new Deadline(clock, () => guarded(() => this.#endLate()));
  }

  /** What they hold, in bytes. */
  get heldBytes(): number {
    let bytes = 0;
    for (const { answers } of this.#batches.all()) for (const answer of answers) bytes += answer.heldBytes;
    return bytes;
  }

  /** The last frame of an answer has been written, and must be flushed. */
  add(answer: LeavingAnswer): void {
    this.#written.push(answer);
  }

  /** All that was written has been given to the socket. */
  flushed(): void {
    if (this.#written.length === 0) return;
    const answers = this.#written;
    this.#written = [];
    if (this.#socket.writableLength === 0) {
      for (const answer of answers) answer.left();
      return;
    }
    const patienceMs = Math.max(...answers.map((answer) => answer.patienceMs));
    const batch: Batch = { answers, untilMs: this.#clock.monotonicMs() + patienceMs };
    this.#batches.add(batch);
    this.#setDeadline();
    // Called after everything written before, and when the socket is given up.
    this.#socket.write('', () => this.#guarded(() => this.#end(batch)));
  }

  /** Nothing more leaves. */
  dispose(): void {
    this.#deadline.dispose();
    const answers = this.#written;
    this.#written = [];
    for (const answer of answers) answer.left();
    for (const batch of this.#batches.all()) this.#end(batch);
  }

  #end(batch: Batch): void {
    if (!this.#batches.delete(batch)) return;
    for (const answer of batch.answers) answer.left();
  }

  #endLate(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const batch of this.#batches.all()) if (batch.untilMs <= nowMs) this.#end(batch);
    this.#setDeadline();
  }

  #setDeadline(): void {
    let firstMs = Number.POSITIVE_INFINITY;
    for (const { untilMs } of this.#batches.all()) firstMs = Math.min(firstMs, untilMs);
    if (firstMs === Number.POSITIVE_INFINITY) this.#deadline.clear();
    else this.#deadline.set(firstMs);
  }
}
