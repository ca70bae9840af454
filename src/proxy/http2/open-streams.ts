const FIRST_PLACES = 16;

/**
 * The streams of a connection that are open or half-closed, by their identifiers.
 *
 * They stand in a table of their own, not in a `Map`: each table of that points to its successor, so that young
 * collections take streams long closed for alive (`../io/collections.ts` explains it in full).
 */
export class OpenStreams<S extends { readonly id: number }> implements Iterable<S> {
  /** Each stands at its place, or in the first free one after it; at most half of the places are taken. */
  #places: (S | undefined)[] = new Array(FIRST_PLACES).fill(undefined);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: number): S | undefined {
    return this.#places[this.#find(id)];
  }

  /** @param stream whose identifier is not in the table. */
  add(stream: S): void {
    this.#size++;
    if (this.#size * 2 > this.#places.length) {
      const streams = [...this];
      this.#places = new Array(this.#places.length * 2).fill(undefined);
      for (const each of streams) this.#places[this.#find(each.id)] = each;
    }
    this.#places[this.#find(stream.id)] = stream;
  }

  delete(id: number): void {
    let free = this.#find(id);
    if (this.#places[free] === undefined) return;
    this.#size--;
    // Streams after it that belong there, or before, move up, so that every stream is found before the first free place.
    for (let at = this.#after(free); ; at = this.#after(at)) {
      const stream = this.#places[at];
      if (stream === undefined) break;
      if (this.#distance(this.#placeOf(stream.id), at) < this.#distance(free, at)) continue;
      this.#places[free] = stream;
      free = at;
    }
    this.#places[free] = undefined;
  }

  /** The present streams, oldest first. */
  [Symbol.iterator](): IterableIterator<S> {
    const streams = this.#places.filter((stream) => stream !== undefined);
    return streams.sort((a, b) => a.id - b.id).values();
  }

  /** Where the stream of that identifier stands, or else would. */
  #find(id: number): number {
    let at = this.#placeOf(id);
    for (let stream = this.#places[at]; stream !== undefined && stream.id !== id; stream = this.#places[at]) {
      at = this.#after(at);
    }
    return at;
  }

  /** Identifiers of one side are all odd, or all even. */
  #placeOf(id: number): number {
    return (id >>> 1) & (this.#places.length - 1);
  }

  #after(place: number): number {
    return (place + 1) & (this.#places.length - 1);
  }

  /** How far `to` is after `from`. */
  #distance(from: number, to: number): number {
    return (to - from) & (this.#places.length - 1);
  }
}
