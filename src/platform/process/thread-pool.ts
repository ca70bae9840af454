/**
 * Sizes libuv's pool, for names, files and keys. Import it before all else, since the first work starts the threads.
 */

const VARIABLE = 'UV_THREADPOOL_SIZE';

/** Half of them may be held by lookups while name servers are silent. */
const THREADS = 32;

/** libuv's default. */
const THREADS_OF_LIBUV = 4;

if (process.env[VARIABLE] === undefined) process.env[VARIABLE] = String(THREADS);

/** How many lookups run at once. The other threads are for files and keys, since the pool knows no priorities. */
export function lookupThreads(env: Readonly<Record<string, string | undefined>> = process.env): number {
  const said = Number.parseInt(env[VARIABLE] ?? String(THREADS_OF_LIBUV), 10) || 1;
  const threads = Math.min(Math.max(said, 1), 1024);
  return Math.ceil(threads / 2);
}
