/**
 * Connections whose caller is not known yet: in their handshake, or before their first admitted request. Their number
 * is bounded. One more displaces the oldest from the address that has the most, so that a flood displaces its own.
 */
export class UnauthenticatedConnections {
  readonly #most: () => number;
  readonly #onDisplaced: (address: string) => void;
  /** By address, the oldest first. */
  readonly #byAddress = new Map<string, Set<() => void>>();
  #size = 0;

  /** @param most called at each admission. @param onDisplaced called for each connection that gives way. */
  constructor(most: () => number, onDisplaced: (address: string) => void) {
    this.#most = most;
    this.#onDisplaced = onDisplaced;
  }

  get size(): number {
    return this.#size;
  }

  /**
   * @param end ends the connection.
   * @returns a function to report that its caller is known, or that it is gone; safe to call again.
   */
  admit(address: string, end: () => void): () => void {
    const most = this.#most();
    while (this.#size > 0 && this.#size >= most) this.#displace();
    let ofAddress = this.#byAddress.get(address);
    if (ofAddress === undefined) {
      ofAddress = new Set();
      this.#byAddress.set(address, ofAddress);
    }
    // Each entry is distinct, even for equal functions.
    const entry = (): void => end();
    ofAddress.add(entry);
    this.#size += 1;
    return () => this.#remove(address, entry);
  }

  #displace(): void {
    let most: readonly [string, Set<() => void>] | undefined;
    for (const entry of this.#byAddress) if (entry[1].size > (most?.[1].size ?? 0)) most = entry;
    if (most === undefined) return;
    const [address, ends] = most;
    const [oldest] = ends;
    if (oldest === undefined) return;
    this.#remove(address, oldest);
    this.#onDisplaced(address);
    oldest();
  }

  #remove(address: string, entry: () => void): void {
    const ofAddress = this.#byAddress.get(address);
    if (ofAddress?.delete(entry) !== true) return;
    this.#size -= 1;
    if (ofAddress.size === 0) this.#byAddress.delete(address);
  }
}
