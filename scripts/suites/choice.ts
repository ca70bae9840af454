import { parseArgs } from 'node:util';
import type { Suite } from './suites.ts';

/**
 * The suites that `--only` names, or all but those that `--without` names.
 * @throws {Error} naming the flag that is wrong.
 */
export function chosenSuites(args: readonly string[], all: readonly Suite[]): readonly Suite[] {
  const { values } = parseArgs({
    args: [...args],
    options: { only: { type: 'string', multiple: true }, without: { type: 'string', multiple: true } },
  });
  const only = names('only', values.only, all);
  const without = names('without', values.without, all);
  return all.filter(({ name }) => (only.size === 0 || only.has(name)) && !without.has(name));
}

function names(flag: string, given: readonly string[] = [], all: readonly Suite[]): ReadonlySet<string> {
  const chosen = given.flatMap((list) => list.split(','));
  for (const name of chosen) {
    if (all.some((suite) => suite.name === name)) continue;
    const known = all.map((suite) => suite.name).join(', ');
    throw new Error(`--${flag} is ${JSON.stringify(name)}; it must be one of ${known}`);
  }
  return new Set(chosen);
}
