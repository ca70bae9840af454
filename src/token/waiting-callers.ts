import type { Clock } from '../clock.ts';
import type { AwaitsGrant, GrantTrace } from './bearer-source.ts';
import type { TokenUnavailable } from './token-unavailable.ts';

interface Caller {
  readonly awaits: AwaitsGrant | undefined;
  resolve(authorization: string): void;
  reject(error: TokenUnavailable): void;
}

export interface WaitingCallersOptions {
  readonly clock: Clock;
  /** How long each may wait. */
  readonly patienceMs: number;
  /** Why there is no token, for one who has waited for too long. */
  tooLate(): TokenUnavailable;
}

/** Those who wait for the grant in flight, each for a bounded time. */
export class WaitingCallers {
  readonly #options: WaitingCallersOptions;
  readonly #callers = new Set<Caller>();

  constructor(options: WaitingCallersOptions) {
    this.#options = options;
  }

  /** Resolves to what is given, rejects with why nothing is. @throws {TokenUnavailable} */
  wait(awaits?: AwaitsGrant): Promise<string> {
    const { clock, patienceMs, tooLate } = this.#options;
    return new Promise((resolve, reject) => {
      const cancelTimeout = clock.after(patienceMs, () => caller.reject(tooLate()));
      const leave = () => {
        this.#callers.delete(caller);
        cancelTimeout();
      };
      const caller: Caller = {
        awaits,
        resolve(authorization) {
          leave();
          resolve(authorization);
        },
        reject(error) {
          leave();
          reject(error);
        },
      };
      this.#callers.add(caller);
    });
  }

  /** Another grant has begun, for which they wait from now on. */
  begun(grant: GrantTrace): void {
    for (const { awaits } of this.#callers) awaits?.(grant);
  }

  give(authorization: string): void {
    for (const caller of [...this.#callers]) caller.resolve(authorization);
  }

  refuse(why: () => TokenUnavailable): void {
    for (const caller of [...this.#callers]) caller.reject(why());
  }
}
