/** What has idle connections to give up. */
export interface IdleHolder {
  /** Closes the connection that has been idle longest; says whether there was one. */
  closeOldestIdle(): boolean;
}

/**
 * Counts the upstream connections of all pools. Those in use are as many as the app may have connections; idle ones
 * make room for them, so that what one route keeps costs no other, nor a probe, its descriptors.
 */
export class OpenUpstreams {
  readonly #most: number;
  readonly #holders = new Set<IdleHolder>();
  /** To be called when another connection may be made. */
  readonly #turnedAway = new Set<() => void>();
  #telling = false;
  #open = 0;

  /** @param most open at once while any of them is idle. */
  constructor(most: number) {
    this.#most = most;
  }

  /** A pool's, from here on. */
  add(holder: IdleHolder): void {
    this.#holders.add(holder);
  }

  remove(holder: IdleHolder): void {
    this.#holders.delete(holder);
  }

  /** Whether another may be made: there is room, or something idle that makes some. */
  mayOpen(): boolean {
    if (this.#open >= this.#most) this.#makeRoom();
    return this.#open < this.#most;
  }

  /** Open at once at the most, where any of them is idle. */
  get most(): number {
    return this.#most;
  }

  /** One more is being made. */
  opened(): void {
    this.#open += 1;
    if (this.#open > this.#most) this.#makeRoom();
  }

  closed(): void {
    this.#open -= 1;
    this.#tellOfRoom();
  }

  /** A connection carries no request any more: it may make room. */
  idled(): void {
    this.#tellOfRoom();
  }

  /**
   * Calls back, once, when a connection has closed or become idle: `mayOpen` may have another answer then.
   * @param callback is called in a turn of its own; the same one is kept once.
   */
  tellOfRoom(callback: () => void): void {
    this.#turnedAway.add(callback);
  }

  #tellOfRoom(): void {
    if (this.#turnedAway.size === 0 || this.#telling) return;
    this.#telling = true;
    setImmediate(() => {
      this.#telling = false;
      const turnedAway = [...this.#turnedAway];
      this.#turnedAway.clear();
      for (const callback of turnedAway) callback();
    });
  }

  #makeRoom(): void {
    for (const holder of this.#holders) {
      if (!holder.closeOldestIdle()) continue;
      // The next time it is another's turn.
      this.#holders.delete(holder);
      this.#holders.add(holder);
      return;
    }
  }
}
