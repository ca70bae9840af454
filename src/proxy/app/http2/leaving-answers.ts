import type { Socket } from 'node:net';
import type { Clock } from '../../../platform/time/clock.ts';
import { Turns } from '../../io/collections.ts';
import { Deadline } from '../../io/deadline.ts';

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
export class LeavingAnswers {
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
