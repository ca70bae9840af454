import { setFlagsFromString } from 'node:v8';

const POOL_BYTES = 8 * 1024;

/**
 * Keeps memory near what is alive, for the whole process.
 *
 * - Where many objects outlive a few young collections, as heads do that wait for an answer among hundreds, V8 has
 *   optimized code put them into the old generation at once ("pretenuring"). In a proxy every one of them is garbage a
 *   moment later: tens of MB of it, until a full collection.
 * - Between full collections V8 lets the heap of a process on a large machine grow to four times its size. A growth of a fifth,
 *   or of 8 MB where that is more, is enough.
 * - What Maglev has compiled, V8 frees on another thread when nothing else is to do there. Where the proxy keeps its core busy,
 *   compiled functions pile up meanwhile, and the holes that they leave in malloc's heap stay: 6 to 9 MB.
 * - Node cuts small buffers from pieces of 64 KiB, and one that somebody holds keeps its whole piece: the hundred octets of a
 *   body that waits for its answer cost 64 KiB, where others come and go meanwhile. Pieces of 8 KiB are as fast.
 *
 * To be called once everything is loaded: given on the command line, or before, V8's flags make Node compile anew what
 * it has in its code cache, for 25 ms of the start. What they change happens later: in optimized code and collections.
 */
export function keepHeapSmall(): void {
  Buffer.poolSize = POOL_BYTES;
  setFlagsFromString('--no-allocation-site-pretenuring');
  setFlagsFromString('--heap-growing-percent=20');
  setFlagsFromString('--no-maglev-destroy-on-background');
}
