import type { Socket } from 'node:net';
import type { Clock } from '../../../platform/time/clock.ts';
import type { Fields } from '../../http/fields.ts';
import type { ErrorCode } from '../../http2/errors.ts';
import type { ServerConnection, ServerStream } from '../../http2/server-connection.ts';
import { CoalescingWriter } from '../../io/coalescing-writer.ts';
import { RoundRobin } from '../../io/collections.ts';
import { Deadline } from '../../io/deadline.ts';
import type { ProtocolHost } from '../connection.ts';

const GATHERED_BYTES = 64 * 1024;

/** Data up to this size is copied behind its frame header; larger pieces are written beside it. */
const SMALL_BYTES = 1024;

/** An app with more unread is not read: control answers would pile up. */
const MAX_UNREAD_BYTES = 256 * 1024;

export interface WaitingResponse {
  /** Sends one frame if allowed. False if none was sent. */
  step(): boolean;
  settle(): void;
  dispose(): void;
}

/** One turn's output leaves in one write; answers without room queue. */
export class Http2Outlet<T> {
  /** For timers and ends of turns: if it throws, only this connection is lost. */
  readonly guarded: ProtocolHost['guarded'];
  readonly #socket: Socket;
  readonly #codec: ServerConnection<T>;
  readonly #writer: CoalescingWriter;
  /** The longest waiting first. */
  readonly #waiting = new RoundRobin<WaitingResponse>();
  readonly #leaving: LeavingResponses;
  #gatheredBytes = 0;
  #flushIsDue = false;

  constructor(carrier: ProtocolHost, codec: ServerConnection<T>, clock: Clock) {
    const { socket } = carrier;
    this.guarded = (act) => carrier.guarded(act);
    this.#socket = socket;
    this.#codec = codec;
    this.#leaving = new LeavingResponses(socket, clock, this.guarded);
    this.#writer = new CoalescingWriter(socket);
  }

  get heldBytes(): number {
    return this.#leaving.heldBytes;
  }

  get room(): boolean {
    return !this.#socket.writableNeedDrain;
  }

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

  /** Sends at most `sendable`; copies before it returns. */
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

  /** The body's octets have left this program: as many more may come. */
  consume(stream: ServerStream<T>, bytes: number): void {
    if (bytes === 0) return;
    this.#codec.consume(stream, bytes);
    this.flushSoon();
  }

  reset(stream: ServerStream<T>, code: ErrorCode): void {
    this.#codec.reset(stream, code);
    this.flushSoon();
  }

  wasUseful(): void {
    this.#codec.wasUseful();
  }

  /** Calls `left` once the answer has left the program. */
  leaves(answer: LeavingResponse): void {
    this.#leaving.add(answer);
    this.flushSoon();
  }

  /** Calls `step` in turn with others while there is room, then `settle`. */
  waitForRoom(sender: WaitingResponse): void {
    this.#waiting.add(sender);
  }

  waitNoMore(sender: WaitingResponse): void {
    this.#waiting.delete(sender);
  }

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

  /** Once this turn of the event loop has read all its sockets. */
  flushSoon(): void {
    if (this.#flushIsDue) return;
    this.#flushIsDue = true;
    setImmediate(() => {
      this.#flushIsDue = false;
      this.guarded(() => this.flush());
    });
  }

  dispose(): void {
    for (const sender of this.#waiting.all()) sender.dispose();
    this.#leaving.dispose();
  }
}

/** Its last frame has been written. */
export interface LeavingResponse {
  /** For the app to read it, in ms. */
  readonly timeoutMs: number;
  readonly heldBytes: number;
  /** The system has taken all of it, never will, or has had its time. */
  left(): void;
}

/** Flushed together. */
interface Batch {
  readonly answers: readonly LeavingResponse[];
  readonly untilMs: number;
}

/** A socket takes answers long before the system does if the app does not read. */
class LeavingResponses {
  readonly #socket: Socket;
  readonly #clock: Clock;
  readonly #guarded: (act: () => void) => void;
  readonly #deadline: Deadline;
  #written: LeavingResponse[] = [];
  readonly #batches = new RoundRobin<Batch>();

  constructor(socket: Socket, clock: Clock, guarded: (act: () => void) => void) {
    this.#socket = socket;
    this.#clock = clock;
    this.#guarded = guarded;
    this.#deadline = new Deadline(clock, () => guarded(() => this.#endLate()));
  }

  get heldBytes(): number {
    let bytes = 0;
    for (const { answers } of this.#batches.all()) for (const answer of answers) bytes += answer.heldBytes;
    return bytes;
  }

  /** The answer must still be flushed. */
  add(answer: LeavingResponse): void {
    this.#written.push(answer);
  }

  flushed(): void {
    if (this.#written.length === 0) return;
    const answers = this.#written;
    this.#written = [];
    if (this.#socket.writableLength === 0) {
      for (const answer of answers) answer.left();
      return;
    }
    const timeoutMs = Math.max(...answers.map((answer) => answer.timeoutMs));
    const batch: Batch = { answers, untilMs: this.#clock.monotonicMs() + timeoutMs };
    this.#batches.add(batch);
    this.#setDeadline();
    // Called after everything written before, and when the socket is given up.
    this.#socket.write('', () => this.#guarded(() => this.#end(batch)));
  }

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
