/** What can be in `Members`, in one of them at a time. */
export interface Member {
  /** Its index there. Only `Members` sets it; 0 at first. */
  place: number;
}

/**
 * Objects that come and go with each request or connection, in no order.
 *
 * A `Set` keeps its removed members until a full collection. When it cleans up it makes a new table, and the old one
 * points to that; once a table has grown old, young collections take what it points to for alive: the next table with
 * all its members, and so on. Where requests were kept in sets, whatever they had allocated was moved to the old
 * generation.
 */
export class Members<M extends Member> implements Iterable<M> {
  readonly #members: M[] = [];

  get size(): number {
    return this.#members.length;
  }

  add(member: M): void {
    if (this.#has(member)) return;
    member.place = this.#members.length;
    this.#members.push(member);
  }

  /** Says whether it was one of them. */
  delete(member: M): boolean {
    if (!this.#has(member)) return false;
    const last = this.#members.pop();
    if (last !== undefined && last !== member) {
      this.#members[member.place] = last;
      last.place = member.place;
    }
    return true;
  }

  clear(): void {
    this.#members.length = 0;
  }

  /** Those that are in now, skipping any that is removed before its turn. */
  *[Symbol.iterator](): Generator<M, void, undefined> {
    for (const member of [...this.#members]) if (this.#has(member)) yield member;
  }

  #has(member: M): boolean {
    return this.#members[member.place] === member;
  }
}
