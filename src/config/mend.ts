import type * as v from 'valibot';

/** Stand in for required settings of entries that could not be understood; never equal to an allowed value. */
const STAND_INS: Readonly<Record<string, (index: number) => unknown>> = {
  name: (index) => `not-understood-${index}`,
  host: (index) => `not-understood-${index}.invalid`,
  allow: () => [{ host: 'not-understood-0.invalid' }],
};

/**
 * The same for a schema whose mappings have more required settings. Keyed by the mapping and the setting,
 * `secret.name`, or by the list and the setting of each entry, `routes[].upstream`. None is an allowed value.
 */
export type StandIns = Readonly<Record<string, (index: number) => unknown>>;

/** The required setting of every entry in these lists. */
const REQUIRED_OF_ENTRIES: Readonly<Record<string, string>> = {
  credentials: 'name',
  routes: 'name',
  allow: 'host',
};

/**
 * Removes a wrong setting from the file's value, or replaces it if it is required, so that the rest can be understood.
 * The resulting value is thrown away with an error.
 * @returns false if nothing can replace what is missing.
 */
export function mend(file: unknown, { path, input }: v.BaseIssue<unknown>, standIns: StandIns = {}): boolean {
  const keys = (path ?? []).map(({ key }) => key as string | number);
  const last = keys.at(-1);
  if (last === undefined) return false;
  const parent = at(file, keys.slice(0, -1));
  if (Array.isArray(parent)) mendEntry(file, keys, parent, Number(last));
  else if (typeof parent === 'object' && parent !== null) {
    const mapping = parent as Record<string, unknown>;
    const makeStandIn = standIns[nameWithin(keys)] ?? (isRequired(keys) ? STAND_INS[last] : undefined);
    if (makeStandIn === undefined) {
      delete mapping[last];
      return input !== undefined;
    }
    const standIn = makeStandIn(indexIn(keys));
    if (mapping[last] === standIn) return false;
    mapping[last] = standIn;
  }
  return true;
}

/** An entry that is no mapping keeps its place, so that the others keep theirs; other lists are dropped as a whole. */
function mendEntry(file: unknown, keys: readonly (string | number)[], list: unknown[], index: number): void {
  const name = String(keys.at(-2));
  const required = Object.hasOwn(REQUIRED_OF_ENTRIES, name) ? REQUIRED_OF_ENTRIES[name] : undefined;
  if (required !== undefined) list[index] = { [required]: STAND_INS[required]?.(index) };
  else delete (at(file, keys.slice(0, -2)) as Record<string, unknown>)[name];
}

/** `credentials[0].name`, `forwardProxy.allow[0].host`, `forwardProxy.allow`; `match.host` may be absent. */
function isRequired(keys: readonly (string | number)[]): boolean {
  const [last, index, list] = [keys.at(-1), keys.at(-2), keys.at(-3)];
  if (last === 'allow') return index === 'forwardProxy';
  return typeof index === 'number' && REQUIRED_OF_ENTRIES[String(list)] === last;
}

/** `secret.name`, `routes[].upstream`. */
function nameWithin(keys: readonly (string | number)[]): string {
  const [last, outer] = [keys.at(-1), keys.at(-2)];
  return typeof outer === 'number' ? `${keys.at(-3)}[].${last}` : `${outer}.${last}`;
}

function indexIn(keys: readonly (string | number)[]): number {
  return Number(keys.findLast((key) => typeof key === 'number') ?? 0);
}

function at(value: unknown, keys: readonly (string | number)[]): unknown {
  let found = value;
  for (const key of keys) found = (found as Record<string | number, unknown> | null | undefined)?.[key];
  return found;
}
