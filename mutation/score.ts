import { type Accepted, isOf } from './accepted.ts';
import type { Mutant } from './mutant.ts';
import { ROOMS, type Room, roomOf } from './rooms.ts';

export interface Score {
  readonly noticed: number;
  /** Of `noticed`, those whose tests hung until their time was over. */
  readonly timedOut: number;
  /** Survivors that nothing excuses, and code that no test reaches. */
  readonly missed: readonly Mutant[];
  readonly accepted: readonly Mutant[];
}

export function scoreOf(mutants: readonly Mutant[], accepted: readonly Accepted[]): Score {
  const lived = mutants.filter(({ fate }) => fate === 'survived' || fate === 'untested');
  const isAccepted = (mutant: Mutant) => accepted.some((entry) => isOf(entry, mutant));
  const timedOut = mutants.filter(({ fate }) => fate === 'timedOut').length;
  return {
    noticed: mutants.filter(({ fate }) => fate === 'noticed').length + timedOut,
    timedOut,
    missed: lived.filter((mutant) => !isAccepted(mutant)),
    accepted: lived.filter(isAccepted),
  };
}

/** Share of the mutants that were noticed, in per cent; accepted ones count on neither side. Without any: 100. */
export function percent({ noticed, missed }: Score): number {
  const all = noticed + missed.length;
  return all === 0 ? 100 : (100 * noticed) / all;
}

/**
 * The largest share, in per cent, that the whole may have when this even part of it came out so: the upper end of
 * Wilson's interval of 95 %. A sample that is short of the threshold by chance alone is no failure.
 */
export function atMost(score: Score): number {
  const z = 1.96;
  const n = score.noticed + score.missed.length;
  if (n === 0) return 100;
  const p = score.noticed / n;
  const middle = p + (z * z) / (2 * n);
  const reach = z * Math.sqrt((p * (1 - p)) / n + (z * z) / (4 * n * n));
  return (100 * (middle + reach)) / (1 + (z * z) / n);
}

export function byFile(mutants: readonly Mutant[]): ReadonlyMap<string, readonly Mutant[]> {
  return new Map([...Map.groupBy(mutants, ({ file }) => file)].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Rooms in their order; files of other rooms come under `other`. */
export function byRoom(mutants: readonly Mutant[]): ReadonlyMap<Room | 'other', readonly Mutant[]> {
  const groups = Map.groupBy(mutants, ({ file }) => roomOf(file) ?? 'other');
  return new Map(
    [...ROOMS, 'other' as const].flatMap((room) => {
      const group = groups.get(room);
      return group === undefined ? [] : [[room, group] as const];
    }),
  );
}
