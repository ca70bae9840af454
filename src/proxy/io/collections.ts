/** Collections of what comes and goes with each request. */

/** Can be in one `Members` at a time. */
export interface Member {
  /** Its index there. Only `Members` sets it; 0 at first. */
  place: number;
}

/**
 * Objects of requests or connections, in no order. A `Set` would keep removed members alive: its old tables
 * point to newer ones, and once a table has grown old, young collections keep all that those hold.
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

  /** Those in it now, skipping any that is removed before its turn. */
  *[Symbol.iterator](): Generator<M, void, undefined> {
    for (const member of [...this.#members]) if (this.#has(member)) yield member;
  }

  #has(member: M): boolean {
    return this.#members[member.place] === member;
  }
}

/** This many used-up places may be left before the others move up. */
const MAX_PLACES_LEFT = 32;

/**
 * Some hundreds of waiters, longest waiting first, each once. Adding, or removing one that is not first,
 * scans them all. (For why it is no `Set`, see `Members`.)
 */
export class Turns<T> {
  readonly #waiting: (T | undefined)[] = [];
  /** Where the first waiter stands. */
  #first = 0;

  get any(): boolean {
    return this.#waiting.length > this.#first;
  }

  /** Does nothing if it waits already. */
  add(one: T): void {
    if (!this.#waiting.includes(one, this.#first)) this.#waiting.push(one);
  }

  delete(one: T): boolean {
    const at = this.#waiting.indexOf(one, this.#first);
    if (at === this.#first) this.next();
    else if (at !== -1) this.#waiting.splice(at, 1);
    return at !== -1;
  }

  goBehind(one: T): boolean {
    if (!this.delete(one)) return false;
    this.#waiting.push(one);
    return true;
  }

  clear(): void {
    this.#waiting.length = 0;
    this.#first = 0;
  }

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

  all(): T[] {
    return this.#waiting.slice(this.#first) as T[];
  }
}
