/** Reads the configuration file: YAML or JSON text in, a checked value and every problem out. Loaded only if there is one. */

import * as v from 'valibot';
import { messageOf, systemCodeOf } from '../platform/errors.ts';
import { readConfigText } from '../platform/files/bounded-file.ts';
import type { Problem } from '../platform/problems.ts';
import { nextTurn } from '../platform/time/async.ts';
import { describeIssue, keysOf, kindOfValue, withInsideOfUnion } from './file-issues.ts';
import { type FileConfig, fileSchema } from './file-schema.ts';
import type { SourceText } from './source-text.ts';
import { parseShortJson, parseYaml } from './yaml.ts';

/** Each round finds at least one mistake; a file that takes more is not worth understanding. */
const MAX_ROUNDS = 200;

/** The part of the file that could be understood. The rest is in `problems`. */
export interface FileReading {
  readonly config: FileConfig;
  /** False if so much is wrong that missing settings cannot be told from those not understood. */
  readonly understood: boolean;
  /** Finds the places of settings. Absent if the text could not be parsed. */
  readonly source?: () => Promise<SourceText | undefined>;
}

/** Keys whose values may be shown in messages. */
const FILE_KEYS = keysOf(fileSchema);

const NOTHING_UNDERSTOOD: FileReading = { config: {}, understood: false };

/**
 * @param key the flag or variable that names the file.
 * @param known its text, if already read.
 */
export async function readConfigFile(
  path: string,
  key: string,
  problems: Problem[],
  known?: string,
): Promise<FileReading> {
  let text: string;
  try {
    text = known ?? (await readConfigText(path));
  } catch (error) {
    const why = systemCodeOf(error) ?? messageOf(error);
    problems.push({ key, value: path, expected: `a readable file (${why})`, code: 'file_unreadable' });
    return NOTHING_UNDERSTOOD;
  }
  return await parseConfig(text, path, problems);
}

/** @param path names the file in messages. */
export async function parseConfig(text: string, path: string, problems: Problem[]): Promise<FileReading> {
  const short = await readShortJson(text);
  if (short !== undefined) {
    // Parsed only to say where something is wrong.
    const source = async () => (await parseYaml(text, path, FILE_KEYS, []))?.source;
    return { config: short, understood: true, source };
  }
  const parsed = await parseYaml(text, path, FILE_KEYS, problems);
  if (parsed === undefined) return NOTHING_UNDERSTOOD;
  const source = async () => parsed.source;
  await nextTurn();
  const value = parsed.value ?? {};
  if (Array.isArray(value) || typeof value !== 'object') {
    problems.push({
      key: '(file)',
      value: kindOfValue(value),
      expected: 'a mapping of settings',
      code: 'file_not_a_mapping',
    });
    return NOTHING_UNDERSTOOD;
  }
  const config = readShape(fileSchema, value, problems);
  return config === undefined ? { ...NOTHING_UNDERSTOOD, source } : { config, understood: true, source };
}

/** Undefined for other text, and if anything is wrong with it. */
async function readShortJson(text: string): Promise<FileConfig | undefined> {
  const value = parseShortJson(text);
  if (value === undefined) return undefined;
  await nextTurn();
  const result = v.safeParse(fileSchema, value);
  return result.success ? result.output : undefined;
}

/**
 * As much of a value as a schema understands; undefined if so much is wrong that nothing can be said of the rest.
 * @param value is changed: mistakes are mended and the rest read again, so that the checks across settings report in
 * the same run.
 * @param standIns for required values other than the names of entries.
 */
export function readShape<const Schema extends v.GenericSchema>(
  schema: Schema,
  value: unknown,
  problems: Problem[],
  standIns?: StandIns,
): v.InferOutput<Schema> | undefined {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const result = v.safeParse(schema, value);
    if (result.success) return result.output;
    const issues = result.issues.flatMap(withInsideOfUnion);
    problems.push(...issues.map((issue) => describeIssue(schema, issue)));
    const mended = issues.map((issue) => mend(value, issue, standIns));
    if (mended.includes(false)) return undefined;
  }
  return undefined;
}

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
function mend(file: unknown, { path, input }: v.BaseIssue<unknown>, standIns: StandIns = {}): boolean {
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
