/**
 * Requests that wait for the verdict on their tokens, including those whose callers have gone: no connection bounds them. A
 * request whose token is known does not wait.
 */
const MAX_WAITING = 2048;

/** Of them with one token: a pod with 32 credentials asks for each up to three times in its first seconds. */
const MAX_WAITING_OF_TOKEN = 128;

/** The places for them, of which one token takes few. */
export class WaitingPlaces {
  #taken = 0;
  readonly #takenByToken = new Map<string, number>();

  hasOneFor(token: string): boolean {
    return this.#taken < MAX_WAITING && (this.#takenByToken.get(token) ?? 0) < MAX_WAITING_OF_TOKEN;
  }

  /** @returns what gives the place back, to be called once. */
  take(token: string): () => void {
    this.#count(token, 1);
    return () => this.#count(token, -1);
  }

  #count(token: string, change: 1 | -1): void {
    this.#taken += change;
    const left = (this.#takenByToken.get(token) ?? 0) + change;
    if (left === 0) this.#takenByToken.delete(token);
    else this.#takenByToken.set(token, left);
  }
}
