import { SidecarError } from '../../../platform/errors.ts';
import type { Clock } from '../../../platform/time/clock.ts';
import { Deadline } from '../../io/deadline.ts';
import type { Http2UpstreamStream } from './stream.ts';

const MAX_WAITING = 1024;

export interface Waiting {
  readonly stream: Http2UpstreamStream;
  /** The first connection that it may have, by number. */
  from: number;
  /** It prefers another connection than the one that refused it. */
  readonly refused: boolean;
  readonly sinceMs: number;
}

interface WaitingLineOptions {
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Called with each that has waited for too long. */
  onLate(stream: Http2UpstreamStream): void;
  onShorter(): void;
}

/** First come, first served, each for a bounded time. */
export class WaitingLine {
  readonly #options: WaitingLineOptions;
  readonly #deadline: Deadline;
  #waiting: Waiting[] = [];

  constructor(options: WaitingLineOptions) {
    this.#options = options;
    this.#deadline = new Deadline(options.clock, () => this.#sendLateAway());
  }

  get length(): number {
    return this.#waiting.length;
  }

  /** @throws {SidecarError} `overloaded` when too many wait. */
  add(stream: Http2UpstreamStream, from: number, refused: boolean): void {
    if (this.#waiting.length >= MAX_WAITING) {
      throw new SidecarError('overloaded', `${MAX_WAITING} requests wait for room on a connection upstream`);
    }
    const { clock, timeoutMs } = this.#options;
    const sinceMs = clock.monotonicMs();
    this.#waiting.push({ stream, from, refused, sinceMs });
    if (this.#waiting.length === 1) this.#deadline.set(sinceMs + timeoutMs);
  }

  takeLast(): void {
    this.#waiting.pop();
  }

  remove(stream: Http2UpstreamStream): void {
    this.#waiting = this.#waiting.filter((waiting) => waiting.stream !== stream);
  }

  takeFor(number: number): Http2UpstreamStream | undefined {
    const index = this.#waiting.findIndex(({ from }) => number >= from);
    return index === -1 ? undefined : this.#waiting.splice(index, 1)[0]?.stream;
  }

  /** Whether any would take an open connection, whichever it is. */
  get anyForWhatStands(): boolean {
    return this.#waiting.some(({ from }) => from === 0);
  }

  lendOut<T>(
    find: (waiting: Waiting) => T | undefined,
    lend: (stream: Http2UpstreamStream, found: T) => void,
  ): void {
    for (let index = 0; index < this.#waiting.length; ) {
      const waiting = this.#waiting[index] as Waiting;
      const found = find(waiting);
      if (found === undefined) {
        if (waiting.from === 0) break;
        index++;
        continue;
      }
      this.#waiting.splice(index, 1);
      lend(waiting.stream, found);
      // Its user may have changed the line.
      index = 0;
    }
  }

  /** @param roomFrom room on connections of this number and later ones. */
  exceeds(roomFrom: (lowest: number) => number): boolean {
    for (const lowest of new Set(this.#waiting.map(({ from }) => from))) {
      const wanted = this.#waiting.reduce((count, { from }) => (from >= lowest ? count + 1 : count), 0);
      if (wanted > roomFrom(lowest)) return true;
    }
    return false;
  }

  /**
   * Those for which no further connection will come.
   * @param last the last connection that is open or being made.
   * @param anyStands a connection that refused a request may take it by now.
   */
  takeHopeless(last: number, anyStands: boolean): readonly Http2UpstreamStream[] {
    const hopeless: Http2UpstreamStream[] = [];
    this.#waiting = this.#waiting.filter((waiting) => {
      if (waiting.refused && anyStands) waiting.from = 0;
      if (waiting.from <= last) return true;
      hopeless.push(waiting.stream);
      return false;
    });
    return hopeless;
  }

  takeAll(): readonly Http2UpstreamStream[] {
    return this.#waiting.splice(0).map(({ stream }) => stream);
  }

  dispose(): void {
    this.#deadline.dispose();
    this.#waiting = [];
  }

  #sendLateAway(): void {
    const { clock, timeoutMs, onLate, onShorter } = this.#options;
    const nowMs = clock.monotonicMs();
    for (let [first] = this.#waiting; first !== undefined; [first] = this.#waiting) {
      if (first.sinceMs + timeoutMs > nowMs) {
        this.#deadline.set(first.sinceMs + timeoutMs);
        return;
      }
      this.#waiting.shift();
      onLate(first.stream);
    }
    onShorter();
  }
}
