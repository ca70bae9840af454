/**
 * A bounded queue before a target that may stall, fill up or vanish. It drops and counts lines, and never blocks, grows
 * or ends the program.
 */

import { constants, openSync, writeSync } from 'node:fs';
import { messageOf, systemCodeOf } from '../errors.ts';
import type { Clock } from '../time/clock.ts';

interface LogTarget {
  /**
   * Never waits.
   * @returns the number of bytes accepted.
   * @throws {Error} without a reader (EPIPE) or space (ENOSPC).
   */
  write(bytes: Uint8Array): number;
}

export interface LogLosses {
  output: number;
  repeated: number;
}

/** A few thousand lines. */
const QUEUE_BYTES = 256 * 1024;
/** Four times a container runtime's limit. */
const LINE_BYTES = 64 * 1024;
const MIN_RETRY_MS = 20;
const MAX_RETRY_MS = 1000;
/** Between tries while the process ends. */
const FLUSH_PAUSE_MS = 5;

type Output = { readonly kind: 'flowing' } | StalledOutput;

interface StalledOutput {
  readonly kind: 'stalled';
  queue: Uint8Array[];
  queuedBytes: number;
  /** After a loss, all lines are dropped until the queue is empty. */
  lost: number;
  /** Undefined if the target only accepted no more. */
  failure: string | undefined;
  retryMs: number;
  cancelRetry: () => void;
}

export class LogOutput {
  readonly losses: LogLosses = { output: 0, repeated: 0 };
  readonly #target: LogTarget;
  readonly #clock: Clock;
  readonly #format: (line: string) => string;
  #output: Output = { kind: 'flowing' };
  #used = false;
  readonly #lastLines: (() => void)[] = [];

  /** @param format turns each line into the text to write. */
  constructor(target: LogTarget, clock: Clock, format: (line: string) => string = AS_IT_IS) {
    this.#target = target;
    this.#clock = clock;
    this.#format = format;
  }

  get used(): boolean {
    return this.#used;
  }

  /** Undefined if the reader is only slow. */
  get failure(): string | undefined {
    return this.#output.kind === 'stalled' ? this.#output.failure : undefined;
  }

  beforeEnd(write: () => void): void {
    this.#lastLines.push(write);
  }

  /** Takes a line with its line end; never blocks or throws. Drops a line that is too long. */
  write(line: string): void {
    this.#used = true;
    let bytes = Buffer.from(this.#format(line));
    if (bytes.length > LINE_BYTES) {
      this.losses.output += 1;
      bytes = Buffer.from(this.#notice({ bytes: bytes.length, msg: 'a log line was too long' }));
    }
    const output = this.#output;
    if (output.kind === 'flowing') {
      const stalled = newStall(bytes);
      if (this.#empty(stalled)) return;
      stalled.queue = stalled.queue.map(byItself);
      this.#output = stalled;
      this.#retryLater(stalled);
    } else if (output.lost > 0 || output.queuedBytes + bytes.length > QUEUE_BYTES) {
      output.lost += 1;
      this.losses.output += 1;
    } else {
      output.queue.push(byItself(bytes));
      output.queuedBytes += bytes.length;
    }
  }

  /** Blocks until the queue is written or `withinMs` have passed. */
  flush(withinMs: number): void {
    for (const write of this.#lastLines.splice(0)) write();
    const endMs = this.#clock.monotonicMs() + withinMs;
    const pause = new Int32Array(new SharedArrayBuffer(4));
    for (;;) {
      const output = this.#output;
      if (output.kind === 'flowing') return;
      this.#pump(output);
      // A slow reader is worth waiting for, a lost one or a full disk is not.
      if (output.failure !== undefined || this.#clock.monotonicMs() >= endMs) return;
      if (this.#output === output) Atomics.wait(pause, 0, 0, FLUSH_PAUSE_MS);
    }
  }

  #retryLater(output: StalledOutput): void {
    output.cancelRetry = this.#clock.after(output.retryMs, () => {
      this.#pump(output);
      if (this.#output === output) this.#retryLater(output);
    });
  }

  #pump(output: StalledOutput): void {
    const before = output.queuedBytes;
    if (this.#empty(output)) {
      output.cancelRetry();
      this.#output = { kind: 'flowing' };
    } else {
      const moved = output.queuedBytes < before;
      output.retryMs = moved ? MIN_RETRY_MS : Math.min(output.retryMs * 2, MAX_RETRY_MS);
    }
  }

  /** False if the target stops accepting. */
  #empty(output: StalledOutput): boolean {
    for (;;) {
      const [first] = output.queue;
      if (first === undefined) {
        if (output.lost === 0) return true;
        const notice = Buffer.from(this.#lossNotice(output));
        output.lost = 0;
        output.queue.push(notice);
        output.queuedBytes += notice.length;
        continue;
      }
      const taken = this.#offer(first, output);
      output.queuedBytes -= taken;
      if (taken === first.length) output.queue.shift();
      else if (taken > 0) output.queue[0] = first.subarray(taken);
      else return false;
    }
  }

  #offer(bytes: Uint8Array, output: StalledOutput): number {
    try {
      const taken = this.#target.write(bytes);
      if (taken === 0) output.failure = undefined;
      return taken;
    } catch (error) {
      output.failure = systemCodeOf(error) ?? messageOf(error);
      return 0;
    }
  }

  #lossNotice({ lost, failure }: StalledOutput): string {
    const why = failure ?? 'the reader was too slow';
    return this.#notice({ lines: lost, why, msg: 'log lines were left out' });
  }

  #notice(facts: Readonly<Record<string, unknown>>): string {
    const time = new Date(this.#clock.now().wallMs).toISOString();
    return this.#format(`${JSON.stringify({ level: 'warn', time, ...facts })}\n`);
  }
}

const AS_IT_IS = (line: string): string => line;

/** A piece of a shared buffer would keep all of it. */
function byItself(bytes: Uint8Array): Uint8Array {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  copy.set(bytes);
  return copy;
}

function newStall(bytes: Uint8Array): StalledOutput {
  return {
    kind: 'stalled',
    queue: [bytes],
    queuedBytes: bytes.length,
    lost: 0,
    failure: undefined,
    retryMs: MIN_RETRY_MS,
    cancelRetry: () => undefined,
  };
}

/**
 * Never waits for a reader. Node makes pipes and sockets non-blocking. A terminal is opened again, so that Ctrl-S does
 * not halt the program.
 */
export function openStandardOutput(stdout: NodeJS.WriteStream): LogTarget {
  const fd = stdout.isTTY ? reopenedTerminal() : 1;
  return {
    write(bytes) {
      try {
        return writeSync(fd, bytes);
      } catch (error) {
        if (systemCodeOf(error) === 'EAGAIN') return 0;
        throw error;
      }
    },
  };
}

function reopenedTerminal(): number {
  try {
    return openSync('/proc/self/fd/1', constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    // Outside Linux, or for another user's terminal.
    return 1;
  }
}
