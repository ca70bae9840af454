import { setFlagsFromString } from 'node:v8';

/**
 * Keeps V8's memory near what is alive, for the whole process.
 *
 * - Where many objects outlive a few young collections, as heads do that wait for an answer among hundreds, V8 has
 *   optimized code put them into the old generation at once ("pretenuring"). In a proxy every one of them is garbage a
 *   moment later: tens of MB of it, until a full collection.
 * - Between full collections V8 lets the heap of a process on a large machine grow to four times its size. A growth of a fifth,
 *   or of 8 MB where that is more, is enough.
 * - What Maglev has compiled, V8 frees on another thread when nothing else is to do there. Where the proxy keeps its core busy,
 *   compiled functions pile up meanwhile, and the holes that they leave in malloc's heap stay: 6 to 9 MB.
 *
 * To be called once everything is loaded: given on the command line, or before, these flags make Node compile anew what
 * it has in its code cache, for 25 ms of the start. What they change happens later: in optimized code and collections.
 */
export function keepHeapSmall(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
  setFlagsFromString('--heap-growing-percent=20');
  setFlagsFromString('--no-maglev-destroy-on-background');
}
