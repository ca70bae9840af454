import { codeOf, type Problem } from '../platform/problems.ts';

/** Nobody mends more at once, and each is compared with the others. */
const MAX_PROBLEMS = 1000;

/**
 * Leaves out problems that only follow from another: a setting that was not understood, or has a misspelt name, is not
 * missing as well.
 */
export function withoutFollowUps(problems: readonly Problem[]): Problem[] {
  const meant = new Set(problems.flatMap((problem) => problem.meant ?? []));
  const seen = new Set<string>();
  const firsts = problems.filter(({ key }) => !seen.has(key) && seen.add(key)).slice(0, MAX_PROBLEMS);
  const keys = new Set(firsts.map(({ key }) => key));
  return firsts.filter((problem) => {
    if (codeOf(problem) !== 'missing_value') return true;
    const { key, instead = [] } = problem;
    if ([key, ...instead].some((name) => meant.has(name))) return false;
    if (instead.some((name) => keys.has(name))) return false;
    return !firsts.some((other) => other.key !== key && isWithin(key, other.key));
  });
}

/** Whether nothing is known of an entry, or of a part of it, because it was not understood. */
export function isDoubtful(problems: readonly Problem[], entry: string, part?: string): boolean {
  return problems.some(({ key, meant }) =>
    [key, meant].some(
      (name) =>
        name !== undefined &&
        (name === entry ||
          (part !== undefined && isWithin(name, `${entry}.${part}`)) ||
          isWithin(entry, name)),
    ),
  );
}

function isWithin(key: string, outer: string): boolean {
  return key === outer || key.startsWith(`${outer}.`) || key.startsWith(`${outer}[`);
}
