import type { Clock } from '../../../platform/time/clock.ts';
import type { Fields } from '../../http/fields.ts';
import type { ServerStream } from '../../http2/server-connection.ts';
import { ByteQueue } from '../../io/byte-queue.ts';
import { Deadline } from '../../io/deadline.ts';
import type { Http2Outlet, WaitingResponse } from './connection-writer.ts';

/** Smaller pieces wait for the flush, so that they share a frame. */
const SMALL_BYTES = 4096;

export interface SenderEvents {
  /** The app takes more again. */
  onDrain(): void;
  /** Handed over, its end too. */
  sent(): void;
  tooLate(): void;
}

/** A head waits for what follows: an answer without a body is one frame. */
type Progress =
  | { readonly kind: 'before' }
  | { readonly kind: 'head'; readonly fields: Fields; readonly neverIndexed: readonly string[] | undefined }
  | { readonly kind: 'body' }
  | { readonly kind: 'over' };

const BEFORE: Progress = { kind: 'before' };
const BODY: Progress = { kind: 'body' };
const OVER: Progress = { kind: 'over' };

/** Holds no more than comes before `flush` tells the source to wait. */
export class Http2Sender<T> implements WaitingResponse {
  readonly #outlet: Http2Outlet<T>;
  readonly #stream: ServerStream<T>;
  readonly #clock: Clock;
  readonly #events: SenderEvents;
  readonly #waiting = new ByteQueue();
  #progress = BEFORE;
  #awaited = false;
  #end: Fields | undefined;
  stallTimeout: Deadline | undefined;

  constructor(outlet: Http2Outlet<T>, stream: ServerStream<T>, clock: Clock, events: SenderEvents) {
    this.#clock = clock;
    this.#outlet = outlet;
    this.#stream = stream;
    this.#events = events;
  }

  get heldBytes(): number {
    return this.#waiting.length;
  }

  /** @param neverIndexed see `Http2Outlet.sendFields`. */
  interim(fields: Fields, neverIndexed?: readonly string[]): void {
    this.#outlet.sendFields(this.#stream, fields, false, neverIndexed);
  }

  /** @param neverIndexed see `Http2Outlet.sendFields`. */
  head(fields: Fields, neverIndexed?: readonly string[]): void {
    this.#progress = { kind: 'head', fields, neverIndexed };
  }

  /** The piece is copied or sent before this returns. */
  data(slice: Buffer): void {
    if (this.#progress.kind === 'over') return;
    let at = 0;
    if (slice.length > SMALL_BYTES && this.#waiting.length === 0) {
      this.#sendHead(false);
      for (let bytes = this.#allowed(slice.length); bytes > 0; bytes = this.#allowed(slice.length - at)) {
        this.#outlet.sendData(this.#stream, slice.subarray(at, at + bytes), false);
        at += bytes;
      }
    }
    this.#waiting.add(at === 0 ? slice : slice.subarray(at));
  }

  /** False if the app falls behind: `onDrain` follows. */
  flush(): boolean {
    while (this.step());
    if (this.#progress.kind === 'over' || (this.#waiting.length === 0 && this.#outlet.room)) return true;
    this.#awaited = true;
    this.#outlet.waitForRoom(this);
    return false;
  }

  /** @param timeoutMs for the app to make room for what waits. */
  end(trailers: Fields, timeoutMs: number): void {
    this.#end = trailers;
    // A tunnel ends for its upstream first, then as a whole: a wait already begun is not extended.
    if (this.flush() || this.stallTimeout !== undefined) return;
    const clock = this.#clock;
    this.stallTimeout = new Deadline(clock, () => this.#outlet.guarded(() => this.#events.tooLate()));
    this.stallTimeout.set(clock.monotonicMs() + timeoutMs);
  }

  step(): boolean {
    if (this.#progress.kind === 'before' || this.#progress.kind === 'over') return false;
    const trailers = this.#end;
    const endsWithBody = trailers !== undefined && trailers.length === 0;
    if (this.#sendHead(endsWithBody && this.#waiting.length === 0)) return true;
    if (this.#waiting.length > 0) {
      const bytes = this.#allowed(this.#waiting.length);
      if (bytes === 0) return false;
      let last = false;
      this.#waiting.take(bytes, (data) => {
        last = endsWithBody && this.#waiting.length === 0;
        this.#outlet.sendData(this.#stream, data, last);
      });
      if (last) this.#sent();
      return true;
    }
    if (trailers === undefined) return false;
    if (endsWithBody) this.#outlet.sendData(this.#stream, NOTHING, true);
    // Which of them may be put in a table is unknown, so none is.
    else this.#outlet.sendFields(this.#stream, trailers, true, trailers);
    this.#sent();
    return true;
  }

  /** The stream's window has grown. */
  goOn(): void {
    if (!this.#awaited) return;
    while (this.step());
    this.settle();
  }

  settle(): void {
    if (!this.#awaited || this.#waiting.length > 0 || !this.#outlet.room) return;
    this.#awaited = false;
    this.#outlet.waitNoMore(this);
    this.#events.onDrain();
  }

  /** Sends and reports nothing more. */
  dispose(): void {
    this.#progress = OVER;
    this.#awaited = false;
    this.#waiting.clear();
    this.stallTimeout?.dispose();
    this.#outlet.waitNoMore(this);
  }

  #sendHead(last: boolean): boolean {
    if (this.#progress.kind !== 'head') return false;
    const { fields, neverIndexed } = this.#progress;
    this.#progress = BODY;
    this.#outlet.sendFields(this.#stream, fields, last, neverIndexed);
    if (last) this.#sent();
    return true;
  }

  #allowed(bytes: number): number {
    return this.#outlet.room ? Math.min(bytes, this.#outlet.sendable(this.#stream)) : 0;
  }

  #sent(): void {
    this.dispose();
    this.#events.sent();
  }
}

const NOTHING = Buffer.alloc(0);
