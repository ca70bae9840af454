/**
 * A fixed piece of work, and how many milliseconds of CPU it took: more where somebody else has the other half of the
 * physical core or the cache. Run by neighbours.ts.
 */

/** 2 MiB: about what the cache holds that a core has to itself, and far less than the one that cores share. */
const LINKS = 2 ** 19;
const STEPS = 100_000;
const ROUNDS = 12_000_000;
/** Until the code is compiled. */
const WARM_UPS = 20;

const links = oneCycle(LINKS);
for (let index = 0; index < WARM_UPS; index++) work(ROUNDS / 100, STEPS / 100);
const before = process.threadCpuUsage();
const result = work(ROUNDS, STEPS);
const { user, system } = process.threadCpuUsage(before);
// The result is used, so that none of the work can be left out.
if (!Number.isInteger(result)) throw new Error('the work has no result');
process.stdout.write(String((user + system) / 1000));

function work(rounds: number, steps: number): number {
  return (arithmetic(rounds) + follow(steps)) | 0;
}

/** Sums that do not wait for one another: as many at a time as the core can. */
function arithmetic(rounds: number): number {
  let a = 1;
  let b = 2;
  let c = 3;
  let d = 4;
  for (let index = 0; index < rounds; index++) {
    a = (a + index) | 0;
    b ^= index;
    c = (c + (index ^ 3)) | 0;
    d ^= index | 1;
  }
  return (a + b + c + d) | 0;
}

/** Reads of which each waits for the one before. */
function follow(steps: number): number {
  let at = 0;
  for (let step = 0; step < steps; step++) at = links[at] ?? 0;
  return at;
}

/** Each place names the next, in an order that no cache foresees (Sattolo's algorithm). */
function oneCycle(length: number): Int32Array {
  const places = Int32Array.from({ length }, (_, index) => index);
  let random = 1;
  for (let index = length - 1; index > 0; index--) {
    random = (Math.imul(random, 1_664_525) + 1_013_904_223) >>> 0;
    const other = Math.floor((random / 2 ** 32) * index);
    const place = places[index] ?? 0;
    places[index] = places[other] ?? 0;
    places[other] = place;
  }
  return places;
}
