import { codeOf, type Problem } from '../platform/problems.ts';
import type { Config, ForwardingPolicy } from './config.ts';

/** Flags and environment describe it; routes that name none use it. */
export const DEFAULT_NAME = 'default';

/** An entry with its key for messages. */
export interface Keyed<Entry> {
  readonly key: string;
  readonly entry: Entry;
}

export function keyed<Entry extends { name: string }>(
  list: string,
  entries: readonly Entry[] = [],
): Keyed<Entry>[] {
  return entries.map((entry, index) => ({ key: `${list}[${index}]`, entry }));
}

export function checkUnique(entries: readonly Keyed<{ name: string }>[], problems: Problem[]): void {
  const names = new Map<string, string>();
  for (const { key, entry } of entries) {
    const { name } = entry;
    const earlier = names.get(name);
    if (earlier === undefined) names.set(name, key);
    else {
      const expected = `a name that no other entry has, and ${earlier} has this one`;
      problems.push({ key: `${key}.name`, value: name, expected, code: 'duplicate_name' });
    }
  }
}

export function policiesOf({
  routes,
  forwardProxy,
  capture,
  redirect,
}: Pick<Config, 'routes' | 'forwardProxy' | 'capture' | 'redirect'>): readonly ForwardingPolicy[] {
  return [...routes, ...(forwardProxy?.allow ?? []), ...(capture?.hosts ?? []), ...(redirect?.hosts ?? [])];
}

/** Each is compared with all others. */
const MAX_PROBLEMS = 1000;

/** A setting that was misspelt or not understood is not missing as well. */
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

/** Whether the entry, or that part of it, was not understood. */
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
