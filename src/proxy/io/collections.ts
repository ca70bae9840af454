/** Can be in one `DenseSet` at a time. */
export interface Member {
  /** Only `DenseSet` sets it; 0 at first. */
  place: number;
}

/**
 * In no order. A `Set` replaces its table when it cleans up. A table that has grown old points to its
 * successors, so that young collections keep what those hold, removed members included.
 */
export class DenseSet<M extends Member> implements Iterable<M> {
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

  /** Skips any that is removed before its turn. */
  *[Symbol.iterator](): Generator<M, void, undefined> {
    for (const member of [...this.#members]) if (this.#has(member)) yield member;
  }

  #has(member: M): boolean {
    return this.#members[member.place] === member;
  }
}

/** At this many, the others move up. */
const MAX_PLACES_LEFT = 32;

/**
 * Some hundreds, longest waiting first. Adding, or removing one that is not first, scans all. (Why no `Set`:
 * see `DenseSet`.)
 */
export class RoundRobin<T> {
  readonly #waiting: (T | undefined)[] = [];
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
