import { hasPassed, type Instant, later } from '../../src/platform/time/clock.ts';
import type { BearerSource, TokenProvider } from '../../src/token/bearer-source.ts';
import type { ModelClock } from './model-clock.ts';

/** A recognisable part of every token. */
export const TOKEN_MARK = 'model-token';

const LIFETIME_MS = 300_000;

/** A token source that does what the walk says: it has a token, or is asked for one, which comes, or does not. */
export class ModelBearer implements BearerSource, TokenProvider {
  readonly #clock: ModelClock;
  readonly #refuse: () => Error;
  readonly #ends = new Map<string, Instant>();
  /** Tokens that were good when the last turn ended, or have come since. */
  #goodBefore = new Set<string>();
  #held: string | undefined;
  #atOnce: boolean;
  #waiting: PromiseWithResolvers<string | undefined>[] = [];

  /** @param refuse makes the data path's own error for a token that is not to be had. */
  constructor(clock: ModelClock, atOnce: boolean, refuse: () => Error) {
    this.#clock = clock;
    this.#atOnce = atOnce;
    this.#refuse = refuse;
    this.grant(LIFETIME_MS);
  }

  forUpstream(): BearerSource {
    return this;
  }

  /** What the walk grants does not depend on it. */
  accepted(): void {}

  current(): string | undefined {
    return this.#held !== undefined && this.mayLeave(this.#held) ? this.#held : undefined;
  }

  async obtain(): Promise<string> {
    const token = this.#atOnce ? this.#make(LIFETIME_MS) : await this.#wait();
    if (token === undefined) throw this.#refuse();
    return token;
  }

  async replace(refused: string): Promise<string | undefined> {
    const held = this.current();
    if (held !== undefined && held !== refused) return held;
    return this.#atOnce ? this.#make(LIFETIME_MS) : await this.#wait();
  }

  /** Whether the Authorization value is that of a token that is good now. */
  mayLeave(authorization: string): boolean {
    const end = this.#ends.get(authorization);
    return end !== undefined && !hasPassed(end, this.#clock.now());
  }

  /** The same for what is written together at the end of a turn: it is enough that it was good at some time in it. */
  mayLeaveInTurn(authorization: string): boolean {
    return this.mayLeave(authorization) || this.#goodBefore.has(authorization);
  }

  /** A turn of the event loop has ended. */
  turnEnded(): void {
    const now = this.#clock.now();
    const good = [...this.#ends].filter(([, end]) => !hasPassed(end, now));
    this.#goodBefore = new Set(good.map(([authorization]) => authorization));
  }

  grant(lifetimeMs: number): void {
    const token = this.#make(lifetimeMs);
    for (const waiting of this.#waiting.splice(0)) waiting.resolve(token);
  }

  refuse(): void {
    for (const waiting of this.#waiting.splice(0)) waiting.resolve(undefined);
  }

  /** The token that is held is over. */
  end(): void {
    if (this.#held !== undefined) this.#ends.set(this.#held, this.#clock.now());
  }

  answerAtOnce(): void {
    this.#atOnce = true;
    this.grant(LIFETIME_MS);
  }

  #make(lifetimeMs: number): string {
    this.#held = `Bearer ${TOKEN_MARK}-${this.#ends.size + 1}`;
    this.#ends.set(this.#held, later(this.#clock.now(), lifetimeMs));
    this.#goodBefore.add(this.#held);
    return this.#held;
  }

  #wait(): Promise<string | undefined> {
    const waiting = Promise.withResolvers<string | undefined>();
    this.#waiting.push(waiting);
    return waiting.promise;
  }
}
