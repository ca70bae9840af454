/** Collections of what comes and goes with each request, which leave nothing to the old generation. */

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

/** This many used-up places may be left behind before the others move up. */
const MAX_PLACES_LEFT = 32;

/**
 * A queue of waiters, each in it once, longest waiting first. For some hundreds: adding one, or removing one that is
 * not first, scans them all; taking the first, or moving it to the back, does not. (Why it is no `Set`: see `Members`.)
 */
export class Turns<T> {
  readonly #waiting: (T | undefined)[] = [];
  /** Where the first waiter stands. */
  #first = 0;

  get any(): boolean {
    return this.#waiting.length > this.#first;
  }

  /** Adds it at the back, unless it waits already. */
  add(one: T): void {
    if (!this.#waiting.includes(one, this.#first)) this.#waiting.push(one);
  }

  /** Says whether it waited. */
  delete(one: T): boolean {
    const at = this.#waiting.indexOf(one, this.#first);
    if (at === this.#first) this.next();
    else if (at !== -1) this.#waiting.splice(at, 1);
    return at !== -1;
  }

  /** Moves it to the back if it waited; says whether it did. */
  goBehind(one: T): boolean {
    if (!this.delete(one)) return false;
    this.#waiting.push(one);
    return true;
  }

  clear(): void {
    this.#waiting.length = 0;
    this.#first = 0;
  }

  /** Removes and returns the first. */
  next(): T | undefined {
    const one = this.#waiting[this.#first];
    if (!this.any) return undefined;
    this.#waiting[this.#first++] = undefined;
    if (!this.any) this.clear();
    else if (this.#first > MAX_PLACES_LEFT && this.#first * 2 > this.#waiting.length) {
      this.#waiting.splice(0, this.#first);
      this.#first = 0;
    }
    return one;
  }

  /** All that wait now. */
  all(): T[] {
    return this.#waiting.slice(this.#first) as T[];
  }
}
