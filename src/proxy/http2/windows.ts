/** Flow control (RFC 9113 §5.2, §6.9): one window of each kind for the connection and one for each stream. */

import { MAX_31_BITS } from './frame-type.ts';

/** What may still be sent. */
export class SendWindow {
  #available: number;
  /** Sent, and not yet given back. */
  #unreturned = 0;

  constructor(bytes: number) {
    this.#available = bytes;
  }

  /** Octets; negative where the peer made the window smaller than what was under way (RFC 9113 §6.9.2). */
  get available(): number {
    return this.#available;
  }

  /** Octets are sent; never more than are available. */
  take(bytes: number): void {
    this.#available -= bytes;
    this.#unreturned += bytes;
  }

  /** WINDOW_UPDATE came. Whether it gives back no more than what was sent. */
  returns(bytes: number): boolean {
    const covered = bytes <= this.#unreturned;
    this.#unreturned = Math.max(0, this.#unreturned - bytes);
    return covered;
  }

  /** WINDOW_UPDATE, or a change of SETTINGS_INITIAL_WINDOW_SIZE, which may take away. False: larger than 2^31-1. */
  grow(bytes: number): boolean {
    this.#available += bytes;
    return this.#available <= MAX_31_BITS;
  }
}

/** Less is given back only where the peer can send nothing more. */
const SMALL_STEP_BYTES = 4096;

/**
 * What the peer may still send. The window is given back as what came is consumed, in steps of half its size, so that
 * updates are few and the peer does not run dry. That of a connection is shared: streams that stall may hold more than half of it,
 * and what the others consume is then given back in smaller steps, before they run dry.
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

  /** Octets that may be held for this window at most. */
  get size(): number {
    return this.#size;
  }

  /** Octets that the peer may still send, as far as it knows. */
  get granted(): number {
    return Math.max(0, this.#granted);
  }

  /** DATA came. False: more than was granted. */
  receive(bytes: number): boolean {
    this.#granted -= bytes;
    return this.#granted >= 0;
  }

  /**
   * The increment of a WINDOW_UPDATE that is to be sent now that DATA came, or 0. Where it has taken what was left, and stalls, nothing
   * more is consumed by which what is owed would be given back.
   */
  due(): number {
    return this.#granted < SMALL_STEP_BYTES && this.#runsDry() ? this.#giveBack() : 0;
  }

  /** Octets are done with. Returns the increment of a WINDOW_UPDATE that is to be sent now, or 0. */
  consume(bytes: number): number {
    this.#owed += bytes;
    return this.#owed * 2 >= this.#size || this.#runsDry() ? this.#giveBack() : 0;
  }

  /**
   * Makes the window larger than the settings say (the connection's can be enlarged in no other way). Returns the
   * increment to be sent.
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
