/** RFC 9113 §5.2, §6.9 */

import { type DataPiece, MAX_31_BITS } from './frames.ts';

export class SendWindow {
  #available: number;
  /** Octets sent, and not yet given back. */
  #unreturned = 0;

  constructor(bytes: number) {
    this.#available = bytes;
  }

  /** Negative if the peer shrank the window (RFC 9113 §6.9.2). */
  get available(): number {
    return this.#available;
  }

  take(bytes: number): void {
    this.#available -= bytes;
    this.#unreturned += bytes;
  }

  /** False if more is given back than was sent. */
  returns(bytes: number): boolean {
    const covered = bytes <= this.#unreturned;
    this.#unreturned = Math.max(0, this.#unreturned - bytes);
    return covered;
  }

  /** SETTINGS_INITIAL_WINDOW_SIZE may shrink it. False above 2^31-1. */
  grow(bytes: number): boolean {
    this.#available += bytes;
    return this.#available <= MAX_31_BITS;
  }
}

/** Less is given back only to a peer that can send nothing more. */
const SMALL_STEP_BYTES = 4096;

/**
 * What the peer may still send. Half the window is given back at once, so that updates are few; less if
 * stalled streams hold much of a shared window, so that others do not run dry.
 */
export class ReceiveWindow {
  readonly #isShared: boolean;
  #size: number;
  /** What the peer may send, as far as it knows. */
  #granted: number;
  /** Consumed, and not yet given back. */
  #owed = 0;

  constructor(bytes: number, { isShared = false } = {}) {
    this.#isShared = isShared;
    this.#size = bytes;
    this.#granted = bytes;
  }

  get size(): number {
    return this.#size;
  }

  /** What the peer may send, as far as it knows. */
  get granted(): number {
    return Math.max(0, this.#granted);
  }

  /** False if more came than was granted. */
  receive(bytes: number): boolean {
    this.#granted -= bytes;
    return this.#granted >= 0;
  }

  /**
   * The increment of a WINDOW_UPDATE, or 0. If DATA of a stalled stream took the rest, nothing else would
   * give back what is owed.
   */
  due(): number {
    return this.#granted < SMALL_STEP_BYTES && this.#runsDry() ? this.#giveBack() : 0;
  }

  /** Returns the increment of a WINDOW_UPDATE, or 0. */
  consume(bytes: number): number {
    this.#owed += bytes;
    return this.#owed * 2 >= this.#size || this.#runsDry() ? this.#giveBack() : 0;
  }

  /** Beyond the settings, as only the connection's window needs. Returns the increment to send. */
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

/** Frames beside DATA in flight when a stream is reset; also earned by one that ends. */
export const FRAMES_PER_STREAM = 4;

/** What may be in flight to streams that this side has reset. */
export class InFlightAfterReset {
  #bytes = 0;
  #frames = 0;

  /** @param allowedBytes of DATA on the reset stream. */
  reset(allowedBytes: number): void {
    this.#bytes += allowedBytes;
    this.#frames += FRAMES_PER_STREAM;
  }

  /** Whether it was in flight. A frame in pieces counts once. */
  data({ windowBytes, last }: DataPiece): boolean {
    const wasAllowed = windowBytes > 0 && windowBytes <= this.#bytes;
    this.#bytes = Math.max(0, this.#bytes - windowBytes);
    return wasAllowed || !last;
  }

  /** Whether the frame was in flight. */
  frame(): boolean {
    if (this.#frames === 0) return false;
    this.#frames--;
    return true;
  }
}
