import { createHash } from 'node:crypto';
import type { ReportedMutant } from './mutant.ts';

/** What the tests were run for; the rest was told from the coverage, or lies outside the sample. */
const RUN: ReadonlySet<string> = new Set(['Killed', 'Timeout', 'Survived', 'RuntimeError']);

/** The same tree, files and seed give the same order. */
export function inSeededOrder<M extends { readonly id: string }>(
  mutants: readonly M[],
  seed: string,
): readonly M[] {
  const places = new Map(mutants.map((mutant) => [mutant, placeOf(mutant, seed)]));
  return mutants.toSorted((a, b) => ((places.get(a) as string) < (places.get(b) as string) ? -1 : 1));
}

/**
 * The mutants up to the last that tests were run for, in the order of the seed. Those that no test reaches are all known
 * at once: with every one of them in it, a part would look worse than the whole.
 */
export function evenPart(reported: readonly ReportedMutant[], seed: string): readonly ReportedMutant[] {
  const order = inSeededOrder(reported, seed);
  return order.slice(0, order.findLastIndex(({ status }) => RUN.has(status)) + 1);
}

function placeOf({ id }: { readonly id: string }, seed: string): string {
  return createHash('sha256').update(`${seed}\n${id}`).digest('hex');
}
