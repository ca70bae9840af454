/** A holder of idle connections that can be closed. */
export interface IdleHolder {
  /** Closes the connection that has been idle longest; says whether there was one. */
  closeOldestIdle(): boolean;
}

/**
 * Counts the upstream connections of all pools. As many may be in use as the app may have connections; idle ones make
 * room for them, so that what one route keeps idle takes descriptors from no other route, nor from a probe.
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

  /** Includes a pool's connections from here on. */
  add(holder: IdleHolder): void {
    this.#holders.add(holder);
  }

  remove(holder: IdleHolder): void {
    this.#holders.delete(holder);
  }

  /** Whether another may be made: there is room, or an idle one makes some. */
  mayOpen(): boolean {
    if (this.#open >= this.#most) this.#makeRoom();
    return this.#open < this.#most;
  }

  /** The most open at once while any of them is idle. */
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

  /** A connection no longer carries a request: it may make room. */
  idled(): void {
    this.#tellOfRoom();
  }

  /**
   * Calls back, once, when a connection has closed or become idle: `mayOpen` may answer differently then.
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
      // Next time it is another's turn.
      this.#holders.delete(holder);
      this.#holders.add(holder);
      return;
    }
  }
}
