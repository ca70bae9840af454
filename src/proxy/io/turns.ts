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
