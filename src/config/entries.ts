/** Named entries of the configuration file's lists, and what those of several lists have in common. */

import type { Problem } from '../platform/problems.ts';
import type { Config, ForwardingPolicy } from './config.ts';

/** The entry that flags and environment describe; routes that name none use it. */
export const DEFAULT_NAME = 'default';

/** An entry of the file, or the one that flags and environment define, with the key that names it in messages. */
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
  const names = new Set<string>();
  for (const { key, entry } of entries) {
    const { name } = entry;
    if (names.has(name)) {
      problems.push({
        key: `${key}.name`,
        value: name,
        expected: 'a name that no other entry has',
        code: 'duplicate_name',
      });
    }
    names.add(name);
  }
}

/** How requests are handled, however their upstream is found. */
export function policiesOf({
  routes,
  forwardProxy,
  capture,
  redirect,
}: Pick<Config, 'routes' | 'forwardProxy' | 'capture' | 'redirect'>): readonly ForwardingPolicy[] {
  return [...routes, ...(forwardProxy?.allow ?? []), ...(capture?.hosts ?? []), ...(redirect?.hosts ?? [])];
}
