/**
 * The promise's result, for a waiter that may leave before. A promise that many wait for holds all of them, and all
 * that they hold, until it settles; this one lets go of a waiter that has left.
 * @param why makes the error for a waiter that has left, once `gone` is aborted
 */
export function untilGone<T>(
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
