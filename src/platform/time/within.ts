import type { Clock } from './clock.ts';

/** The promise's result, or `late` if it takes longer than `ms`. A late promise goes on: its rejection is the caller's to watch. */
export function within<T>(ms: number, promise: Promise<T>, clock: Clock): Promise<T | 'late'> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => resolve('late'));
    promise.then(resolve, reject).finally(cancel);
  });
}
