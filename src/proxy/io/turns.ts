/**
 * Those who wait for their turn, each once, the longest first. For some hundreds: to leave, or to stand in it already, takes a look at
 * all. (Why it is no `Set`: see `Members`.)
 */
export class Turns<T> {
  readonly #waiting: T[] = [];

  get any(): boolean {
    return this.#waiting.length > 0;
  }

  /** Waits behind the others, or where it waits already. */
  add(one: T): void {
    if (!this.#waiting.includes(one)) this.#waiting.push(one);
  }

  /** Says whether it waited. */
  delete(one: T): boolean {
    const at = this.#waiting.indexOf(one);
    if (at !== -1) this.#waiting.splice(at, 1);
    return at !== -1;
  }

  clear(): void {
    this.#waiting.length = 0;
  }

  /** Whose turn it is: waits no more. */
  next(): T | undefined {
    return this.#waiting.shift();
  }

  /** All that wait now. */
  all(): T[] {
    return [...this.#waiting];
  }
}
