import { setFlagsFromString } from 'node:v8';

const POOL_BYTES = 8 * 1024;

/**
 * Keeps the process's memory near what is alive.
 *
 * - No pretenuring: while hundreds wait for answers, V8's optimized code would allocate heads in the old generation,
 *   where tens of MB stay until a full collection.
 * - Between full collections the heap grows by a fifth or 8 MB instead of fourfold.
 * - V8 frees Maglev's code on another thread, when idle. On a busy core it piles up: 6 to 9 MB.
 * - Node cuts small buffers from pieces of 64 KiB, which one held buffer keeps whole. Pieces of 8 KiB are as fast.
 *
 * Call it once everything is loaded: earlier, the flags make Node recompile its code cache, which takes 25 ms.
 */
export function keepHeapSmall(): void {
  Buffer.poolSize = POOL_BYTES;
  setFlagsFromString('--no-allocation-site-pretenuring');
  setFlagsFromString('--heap-growing-percent=20');
  setFlagsFromString('--no-maglev-destroy-on-background');
}
