/**
 * The threads that Node looks names up on, reads files on and computes keys on (libuv's pool). To be imported before all else: the
 * first work of the pool starts them.
 */

const VARIABLE = 'UV_THREADPOOL_SIZE';

/** A lookup holds a thread for as long as name servers are silent, and only half of the threads may be held by lookups. */
const THREADS = 32;

/** What libuv starts where the variable says nothing. */
const THREADS_OF_LIBUV = 4;

if (process.env[VARIABLE] === undefined) process.env[VARIABLE] = String(THREADS);

/** Lookups that run at once; others wait within the pool, which knows no priorities. Files and keys have the other threads. */
export function lookupThreads(env: Readonly<Record<string, string | undefined>> = process.env): number {
  const said = Number.parseInt(env[VARIABLE] ?? String(THREADS_OF_LIBUV), 10) || 1;
  const threads = Math.min(Math.max(said, 1), 1024);
  return Math.ceil(threads / 2);
}
