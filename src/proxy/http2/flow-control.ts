/**
 * Flow control (RFC 9113 §5.2, §6.9) of connections and streams, and what may still come on a stream that was
 * reset.
 */

import { type DataPiece, MAX_31_BITS } from './frames.ts';

/** What may still be sent. */
export class SendWindow {
  #available: number;
  /** Sent, and not yet given back. */
  #unreturned = 0;

  constructor(bytes: number) {
    this.#available = bytes;
  }

  /** Octets; negative if the peer shrank the window below what was in flight (RFC 9113 §6.9.2). */
  get available(): number {
    return this.#available;
  }

  /** Never more than are available. */
  take(bytes: number): void {
    this.#available -= bytes;
    this.#unreturned += bytes;
  }

  /** For WINDOW_UPDATE. False if it gives back more than was sent. */
  returns(bytes: number): boolean {
    const covered = bytes <= this.#unreturned;
    this.#unreturned = Math.max(0, this.#unreturned - bytes);
    return covered;
  }

  /** For WINDOW_UPDATE and SETTINGS_INITIAL_WINDOW_SIZE, which may shrink it. False if larger than 2^31-1. */
  grow(bytes: number): boolean {
    this.#available += bytes;
    return this.#available <= MAX_31_BITS;
  }
}

/** Less is given back only if the peer can send nothing more. */
const SMALL_STEP_BYTES = 4096;

/**
 * What the peer may still send. Octets are given back in steps of half the window, so that updates are few.
 * If stalled streams hold much of a shared window, the steps become smaller, so that the others do not run
 * dry.
 */
export class ReceiveWindow {
  readonly #isShared: boolean;
  #size: number;
  /** What the peer may send as far as it knows. */
  #granted: number;
  /** Consumed, and not yet given back. */
  #owed = 0;

  constructor(bytes: number, { isShared = false } = {}) {
    this.#isShared = isShared;
    this.#size = bytes;
    this.#granted = bytes;
  }

  /** The most octets that may be held for this window. */
  get size(): number {
    return this.#size;
  }

  /** Octets that the peer may still send, as far as it knows. */
  get granted(): number {
    return Math.max(0, this.#granted);
  }

  /** False if more came than was granted. */
  receive(bytes: number): boolean {
    this.#granted -= bytes;
    return this.#granted >= 0;
  }

  /**
   * The increment of a WINDOW_UPDATE due after DATA, or 0. Otherwise a stalled stream that took what was left
   * would keep what is owed.
   */
  due(): number {
    return this.#granted < SMALL_STEP_BYTES && this.#runsDry() ? this.#giveBack() : 0;
  }

  /** Returns the increment of a WINDOW_UPDATE due now, or 0. */
  consume(bytes: number): number {
    this.#owed += bytes;
    return this.#owed * 2 >= this.#size || this.#runsDry() ? this.#giveBack() : 0;
  }

  /**
   * Enlarges the window beyond the settings; the only way for the connection's. Returns the increment to
   * send.
   */
  enlarge(bytes: number): number {
    this.#owed += bytes;
    this.#size += bytes;
    return this.#giveBack();
  }

  #runsDry(): boolean {
    if (!this.#isShared || this.#owed < this.#granted) return false;
    return this.#owed >= SMALL_STEP_BYTES || this.#granted <= 0;
  }

  #giveBack(): number {
    const increment = this.#owed;
    this.#owed = 0;
    this.#granted += increment;
    return increment;
  }
}

/** Frames beside DATA that may be in flight when a stream is reset, and are earned when it ends. */
export const FRAMES_PER_STREAM = 4;

/** What the peer may still send on reset streams before it knows. */
export class RunOut {
  #bytes = 0;
  #frames = 0;

  /** @param allowedBytes octets of DATA that the reset stream still allowed. */
  reset(allowedBytes: number): void {
    this.#bytes += allowedBytes;
    this.#frames += FRAMES_PER_STREAM;
  }

  /** Whether DATA for a reset stream was in flight. A frame in pieces counts once, with its last piece. */
  data({ windowBytes, last }: DataPiece): boolean {
    const wasAllowed = windowBytes > 0 && windowBytes <= this.#bytes;
    this.#bytes = Math.max(0, this.#bytes - windowBytes);
    return wasAllowed || !last;
  }

  /** Whether another frame for a closed stream was in flight. */
  frame(): boolean {
    if (this.#frames === 0) return false;
    this.#frames--;
    return true;
  }
}
