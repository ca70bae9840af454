/**
 * What the promise comes to, for one who may go before. A promise that many wait for holds each of them, and all that each
 * holds, to its end: this one lets go of who has gone.
 * @param why it rejects with, once `gone` is aborted
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
