import type { Clock } from '../platform/time/clock.ts';
import type {
  Authorization,
  AwaitsGrant,
  GrantTrace,
  TokenUnavailable,
  TokenWaiter,
} from './bearer-source.ts';

interface Caller {
  readonly awaits: AwaitsGrant | undefined;
  resolve(authorization: Authorization): void;
  reject(error: TokenUnavailable): void;
}

interface WaitingCallersOptions {
  readonly clock: Clock;
  readonly timeoutMs: number;
  unavailable(): TokenUnavailable;
}

/** Each waits for a bounded time or until it goes. */
export class WaitingCallers {
  readonly #options: WaitingCallersOptions;
  readonly #callers = new Set<Caller>();

  constructor(options: WaitingCallersOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#callers.size;
  }

  /** @throws {TokenUnavailable} */
  wait({ awaits, gone }: TokenWaiter = {}): Promise<Authorization> {
    const { clock, timeoutMs, unavailable } = this.#options;
    return new Promise((resolve, reject) => {
      const giveUp = () => caller.reject(unavailable());
      const cancelTimeout = clock.after(timeoutMs, giveUp);
      const leave = () => {
        this.#callers.delete(caller);
        cancelTimeout();
        gone?.removeEventListener('abort', giveUp);
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
      if (gone?.aborted) giveUp();
      else gone?.addEventListener('abort', giveUp);
    });
  }

  begun(grant: GrantTrace): void {
    for (const { awaits } of this.#callers) awaits?.(grant);
  }

  give(authorization: Authorization): void {
    for (const caller of [...this.#callers]) caller.resolve(authorization);
  }

  refuse(why: () => TokenUnavailable): void {
    for (const caller of [...this.#callers]) caller.reject(why());
  }
}

/**
 * Frees the memory of a waiter that has left, which a bare promise keeps until it settles.
 * @param why makes the error once `gone` is aborted.
 */
export function abortable<T>(
  promise: Promise<T>,
  gone: AbortSignal | undefined,
  why: () => Error,
): Promise<T> {
  if (gone === undefined) return promise;
  const { promise: own, resolve, reject } = Promise.withResolvers<T>();
  let waiting: { resolve: typeof resolve; reject: typeof reject } | undefined = { resolve, reject };
  const leave = (): void => {
    waiting?.reject(why());
    waiting = undefined;
  };
  promise.then(
    (value) => waiting?.resolve(value),
    (error) => waiting?.reject(error),
  );
  if (gone.aborted) leave();
  else gone.addEventListener('abort', leave, { once: true });
  return own;
}
