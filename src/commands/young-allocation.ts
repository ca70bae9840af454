import { setFlagsFromString } from 'node:v8';

/**
 * Keeps the objects of requests out of V8's old generation. Where many objects outlive a few young collections, as
 * heads do that wait for an answer among hundreds, V8 has optimized code put them there at once ("pretenuring"): in
 * a proxy every one of them is garbage a moment later, tens of MB of it, until a full collection.
 *
 * For the whole process, and to be called once everything is loaded: a flag given on the command line, or changed
 * earlier, would make Node compile anew what it has in its code cache, for 25 ms of the start. What the flag forbids
 * happens in optimized code alone, which is made later.
 */
export function allocateYoung(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
}
