import type { Clock } from './clock.ts';

/**
 * What the promise comes to, or `late` where it takes longer than `ms`. What is late goes on; whether it rejects in the end
 * is for who asked to look after.
 */
export function within<T>(ms: number, promise: Promise<T>, clock: Clock): Promise<T | 'late'> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => resolve('late'));
    promise.then(resolve, reject).finally(cancel);
  });
}
