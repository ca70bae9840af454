import { setFlagsFromString } from 'node:v8';

const POOL_BYTES = 8 * 1024;

/**
 * Keeps memory near what is alive, for the whole process.
 *
 * - Where many objects outlive a few young collections, as heads do that wait for an answer among hundreds, V8's
 *   optimized code allocates them in the old generation at once ("pretenuring"). In a proxy each of them is garbage a
 *   moment later: tens of MB, until a full collection.
 * - Between full collections V8 lets the heap of a process on a large machine grow to four times its size. Growth by a
 *   fifth, or by 8 MB if that is more, is enough.
 * - V8 frees code compiled by Maglev on another thread, when that is idle. Where the proxy keeps its core busy,
 *   compiled functions pile up meanwhile, and the holes that they leave in malloc's heap stay: 6 to 9 MB.
 * - Node cuts small buffers from pieces of 64 KiB, and a buffer still held keeps its whole piece: the hundred octets of
 *   a body that waits for its answer cost 64 KiB, where others come and go meanwhile. Pieces of 8 KiB are as fast.
 *
 * To be called once everything is loaded: given on the command line, or earlier, V8's flags make Node recompile what is
 * in its code cache, at 25 ms of the start. Their effect comes later: in optimized code and collections.
 */
export function keepHeapSmall(): void {
  Buffer.poolSize = POOL_BYTES;
  setFlagsFromString('--no-allocation-site-pretenuring');
  setFlagsFromString('--heap-growing-percent=20');
  setFlagsFromString('--no-maglev-destroy-on-background');
}
