/** Sizes libuv's pool. Import it before all else, since the first work starts the threads. */

const VARIABLE = 'UV_THREADPOOL_SIZE';

/** Silent name servers may hold half of them. */
const THREADS = 32;

/** libuv's default. */
const THREADS_OF_LIBUV = 4;

if (process.env[VARIABLE] === undefined) process.env[VARIABLE] = String(THREADS);

/** The others are for files and keys: the pool knows no priorities. */
export function lookupThreads(env: Readonly<Record<string, string | undefined>> = process.env): number {
  const said = Number.parseInt(env[VARIABLE] ?? String(THREADS_OF_LIBUV), 10) || 1;
  const threads = Math.min(Math.max(said, 1), 1024);
  return Math.ceil(threads / 2);
}
