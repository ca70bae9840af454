/** So many places of those who have had their turn are left behind before the others move up. */
const MOST_PLACES_LEFT = 32;

/**
 * Those who wait for their turn, each once, the longest first. For some hundreds: to leave, or to stand in it already, takes a look at
 * all; whoever comes first has his turn, or goes behind the others, without one. (Why it is no `Set`: see `Members`.)
 */
export class Turns<T> {
  readonly #waiting: (T | undefined)[] = [];
  /** Where the first of them stands. */
  #first = 0;

  get any(): boolean {
    return this.#waiting.length > this.#first;
  }

  /** Waits behind the others, or where it waits already. */
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

  /** Waits behind the others from now on, if it waited; says whether it did. */
  goBehind(one: T): boolean {
    if (!this.delete(one)) return false;
    this.#waiting.push(one);
    return true;
  }

  clear(): void {
    this.#waiting.length = 0;
    this.#first = 0;
  }

  /** Whose turn it is: waits no more. */
  next(): T | undefined {
    const one = this.#waiting[this.#first];
    if (!this.any) return undefined;
    this.#waiting[this.#first++] = undefined;
    if (!this.any) this.clear();
    else if (this.#first > MOST_PLACES_LEFT && this.#first * 2 > this.#waiting.length) {
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
