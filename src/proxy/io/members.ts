/** What can be among `Members`, of one kind at a time. */
export interface Member {
  /** Where it stands among them. For `Members` alone to set; 0 at first. */
  place: number;
}

/**
 * Objects that come and go with each request or connection, in no order.
 *
 * A `Set` keeps them all until a full collection. When it cleans up it makes another table, and the old one points to that; once
 * a table has grown old, young collections take what it points to for alive, the next table with all its members, and so on. Where
 * requests were kept in sets, whatever they had allocated was moved to the old generation.
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

  /** Those there are now, without any that has gone by the time of its turn. */
  *[Symbol.iterator](): Generator<M, void, undefined> {
    for (const member of [...this.#members]) if (this.#has(member)) yield member;
  }

  #has(member: M): boolean {
    return this.#members[member.place] === member;
  }
}
