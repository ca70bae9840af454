import type { Accepted } from './accepted.ts';
import type { Mutant } from './mutant.ts';
import { atMost, percent, scoreOf } from './score.ts';

export interface Verdict {
  /** What was measured, for the end of the report. */
  readonly lines: readonly string[];
  readonly reached: boolean;
}

/**
 * Whether the mutants of the files that were asked for meet the threshold (per cent): all of them, or as far as chance
 * allows for a part. When time ran out before the first, nothing is known against the tests: that is said, and passes,
 * because a slow machine is no fault of a change.
 */
export function verdictOn(
  mutants: readonly Mutant[],
  accepted: readonly Accepted[],
  { all, threshold }: { readonly all: boolean; readonly threshold: number },
): Verdict {
  const score = scoreOf(mutants, accepted);
  const counted = score.noticed + score.missed.length;
  const broken = mutants.filter(({ fate }) => fate === 'broken').length;
  if (counted === 0 && broken > 0) {
    return { lines: [`none of ${broken} mutants would run: nothing was measured`], reached: false };
  }
  if (counted === 0) {
    const why = all ? 'there is no mutant to measure' : 'time was over before the tests had run unchanged';
    return { lines: [`NOTHING WAS MEASURED: ${why}`], reached: true };
  }
  const lines = [
    `${percent(score).toFixed(1)} % of ${counted} mutants noticed (${score.timedOut} by time), ` +
      `${score.missed.length} missed, ${score.accepted.length} accepted, ${broken} that would not run`,
  ];
  if (all) return { lines, reached: percent(score) >= threshold };
  const most = atMost(score);
  lines.unshift(
    `an even part of the mutants was measured; the whole has ${most.toFixed(1)} % at most (19 times of 20)`,
  );
  return { lines, reached: most >= threshold };
}
