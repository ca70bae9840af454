/** Reads YAML or JSON, with all mistakes at once. Loaded only if there is a file. */

import * as v from 'valibot';
import { messageOf, systemCodeOf } from '../platform/errors.ts';
import { readConfigText } from '../platform/files/bounded-file.ts';
import { MASK, redactedValue } from '../platform/log/redacted-text.ts';
import type { Problem, ProblemCode } from '../platform/problems.ts';
import { nextTurn } from '../platform/time/async.ts';
import { correctedValue } from './corrections.ts';
import { type FileConfig, fileSchema } from './file-schema.ts';
import type { SourceText } from './source-text.ts';
import { nearestName } from './suggestion.ts';
import { codeOfExpectation } from './values.ts';
import { BYTE_ORDER_MARK, parseShortJson, parseYaml } from './yaml.ts';

/** Each round finds at least one mistake. */
const MAX_ROUNDS = 200;

/** The rest is in `problems`. */
export interface FileResult {
  readonly config: FileConfig;
  /** Whether it is known which settings are missing. */
  readonly understood: boolean;
  /** Absent if the text could not be parsed. */
  readonly source?: () => Promise<SourceText | undefined>;
}

/** Messages may show their values. */
const FILE_KEYS = keysOf(fileSchema);

const NOTHING_UNDERSTOOD: FileResult = { config: {}, understood: false };

/**
 * @param key that names the file.
 * @param known its text, if already read.
 */
export async function readConfigFile(
  path: string,
  key: string,
  problems: Problem[],
  known?: string,
): Promise<FileResult> {
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

/** @param path for messages. */
export async function parseConfig(given: string, path: string, problems: Problem[]): Promise<FileResult> {
  const text = given.startsWith(BYTE_ORDER_MARK) ? given.slice(1) : given;
  const short = await readShortJson(text);
  if (short !== undefined) {
    // Parsed only for the places of problems.
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
      kind: kindOfValue(value),
      expected: 'a mapping of settings',
      code: 'file_not_a_mapping',
    });
    return NOTHING_UNDERSTOOD;
  }
  const config = readShape(fileSchema, value, problems);
  return config === undefined ? { ...NOTHING_UNDERSTOOD, source } : { config, understood: true, source };
}

/** Undefined for other text, and for mistakes. */
async function readShortJson(text: string): Promise<FileConfig | undefined> {
  const value = parseShortJson(text);
  if (value === undefined) return undefined;
  await nextTurn();
  const result = v.safeParse(fileSchema, value);
  return result.success ? result.output : undefined;
}

/**
 * Undefined if nothing can be said of the rest.
 * @param value is mended, so that checks across settings report in the same run.
 * @param standIns for required values other than entries' names.
 */
export function readShape<const Schema extends v.GenericSchema>(
  schema: Schema,
  value: unknown,
  problems: Problem[],
  standIns?: Fallbacks,
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

/** They are no allowed values. */
const FALLBACKS: Readonly<Record<string, (index: number) => unknown>> = {
  name: (index) => `not-understood-${index}`,
  host: (index) => `not-understood-${index}.invalid`,
  allow: () => [{ host: 'not-understood-0.invalid' }],
};

/**
 * By mapping and setting, `secret.name`, or by list and setting, `routes[].upstream`. Not allowed as values.
 */
export type Fallbacks = Readonly<Record<string, (index: number) => unknown>>;

const REQUIRED_OF_ENTRIES: Readonly<Record<string, string>> = {
  credentials: 'name',
  routes: 'name',
  allow: 'host',
};

/**
 * The rest can then be understood. The value only serves to find more problems.
 * @returns false if nothing can replace what is missing.
 */
function mend(file: unknown, { path, input }: v.BaseIssue<unknown>, standIns: Fallbacks = {}): boolean {
  const keys = (path ?? []).map(({ key }) => key as string | number);
  const last = keys.at(-1);
  if (last === undefined) return false;
  const parent = at(file, keys.slice(0, -1));
  if (Array.isArray(parent)) mendEntry(file, keys, parent, Number(last));
  else if (typeof parent === 'object' && parent !== null) {
    const mapping = parent as Record<string, unknown>;
    const makeStandIn = standIns[nameWithin(keys)] ?? (isRequired(keys) ? FALLBACKS[last] : undefined);
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

/** The other entries keep their places. */
function mendEntry(file: unknown, keys: readonly (string | number)[], list: unknown[], index: number): void {
  const name = String(keys.at(-2));
  const required = Object.hasOwn(REQUIRED_OF_ENTRIES, name) ? REQUIRED_OF_ENTRIES[name] : undefined;
  if (required !== undefined) list[index] = { [required]: FALLBACKS[required]?.(index) };
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

interface SchemaShape {
  readonly type: string;
  readonly message?: string;
  readonly entries?: Readonly<Record<string, SchemaShape>>;
  readonly item?: SchemaShape;
  readonly wrapped?: SchemaShape;
  /** A union has them. */
  readonly options?: readonly SchemaShape[];
}

/** Finds settings with a value of their own; a mapping may be followed by anything. */
function keysOf(schema: v.GenericSchema): ReadonlySet<string> {
  const settings = settingsOf(schema).filter(({ shape }) => !holdsMappings(shape));
  return new Set(settings.map(({ name }) => name.split('.').at(-1) as string));
}

/** Lists of mappings count, too. */
function holdsMappings(shape: SchemaShape | undefined): boolean {
  const inner = unwrap(shape);
  if (inner?.options !== undefined) return inner.options.every(holdsMappings);
  if (inner?.item !== undefined) return holdsMappings(inner.item);
  return inner?.type === 'record' || inner?.entries !== undefined;
}

interface Setting {
  readonly name: string;
  readonly shape: SchemaShape;
}

/** Names have no list indices: `routes.match.host`. */
function settingsOf(schema: v.GenericSchema): Setting[] {
  return settingsBelow(shapeOf(schema), '');
}

function shapeOf(schema: v.GenericSchema): SchemaShape {
  return schema as unknown as SchemaShape;
}

/** They judge the kind of a value, not its content. */
const OF_KINDS = new Set(['string', 'number', 'boolean', 'array', 'record', 'strict_object', 'union']);

/** They belong in the mounted Secret. */
const SECRET_NAMES = /secret|password|passwd|private_?key$|^token$|api_?key/i;

const NO_SECRETS =
  "Put it into the Secret that is mounted at the credential's dir: this file holds no secrets.";

/** Uses the issues of the member that understood the value's kind. */
function withInsideOfUnion(issue: v.BaseIssue<unknown>): v.BaseIssue<unknown>[] {
  const { type, issues, path, input } = issue;
  if (type !== 'union' || path === undefined || issues === undefined) return [issue];
  const kind = Array.isArray(input) ? 'array' : 'object';
  const inside = issues
    .filter((one) => one.path?.[0].type === kind)
    .map((one) => ({ ...one, path: [...path, ...(one.path ?? [])] }) as v.BaseIssue<unknown>);
  return inside.length === 0 ? [issue] : inside.flatMap(withInsideOfUnion);
}

function describeIssue(schema: v.GenericSchema, issue: v.BaseIssue<unknown>): Problem {
  const path = issue.path ?? [];
  const key = nameOf(path);
  if (issue.type === 'strict_object' && issue.expected === 'never') return describeUnknownKey(schema, path);
  if (issue.input === undefined) {
    return { key, expected: schemaAt(schema, path)?.message ?? issue.message, code: 'missing_value' };
  }
  // Mappings and lists may hold anything, and so may what the provider defines.
  const mayBeShown = !isFreeForm(schema, path) && !holdsMappings(schemaAt(schema, path));
  const isShown = typeof issue.input !== 'object' && mayBeShown;
  const described: Problem = {
    key,
    ...(isShown ? { value: String(issue.input) } : kindIn(issue)),
    expected: issue.message,
    code: codeFor(issue),
  };
  const remedy = remedyFor(path, issue, mayBeShown);
  return remedy === undefined ? described : { ...described, remedy };
}

function remedyFor(
  path: readonly v.IssuePathItem[],
  issue: v.BaseIssue<unknown>,
  mayBeShown: boolean,
): string | undefined {
  const { type, input, message } = issue;
  if (input === null) return 'Write a value behind the colon, or remove the line.';
  const name = path.at(-1)?.key;
  const corrected = mayBeShown && typeof name === 'string' ? correctedValue(name, issue) : undefined;
  const write = corrected === undefined ? undefined : `Write ${String(name)}: ${corrected}`;
  if (message === 'true or false' && typeof input === 'string') {
    return `${write ?? 'Write true or false'}, without quotes: in YAML 1.2 yes, no, on and off are text.`;
  }
  if (type === 'string' && write === undefined && ['number', 'boolean'].includes(typeof input)) {
    return codeOfExpectation(message) === undefined
      ? 'Put quotes around it: without them it is no text.'
      : undefined;
  }
  return write === undefined ? undefined : `${write}.`;
}

/** None if it is of the right kind and not as it should be. */
function kindIn({ type, input }: v.BaseIssue<unknown>): Pick<Problem, 'kind'> {
  if (Array.isArray(input) && input.length === 0) return { kind: 'an empty list' };
  if (Array.isArray(input) && type === 'max_length') return { kind: `a list of ${input.length}` };
  return OF_KINDS.has(type) || type === 'picklist' ? { kind: kindOfValue(input) } : {};
}

/** `a text`, `a list` */
function kindOfValue(input: unknown): string {
  if (Array.isArray(input)) return 'a list';
  if (input === null) return 'an empty value';
  return (
    { object: 'a mapping', string: 'a text', number: 'a number', boolean: 'a truth value' }[
      typeof input as string
    ] ?? 'something else'
  );
}

function codeFor({ type, input, message }: v.BaseIssue<unknown>): ProblemCode {
  // The unit is missing, or the host.
  if (typeof input === 'number' && codeOfExpectation(message) !== undefined) {
    return codeOfExpectation(message) as ProblemCode;
  }
  if (type === 'picklist') return 'unknown_word';
  if (OF_KINDS.has(type)) return 'wrong_type';
  return codeOfExpectation(message) ?? 'invalid_value';
}

function describeUnknownKey(schema: v.GenericSchema, path: readonly v.IssuePathItem[]): Problem {
  const wrong = String(path.at(-1)?.key);
  const parent = nameOf(path.slice(0, -1));
  if (Array.isArray(path.at(-1)?.input)) {
    return { key: parent, kind: 'a list', expected: 'a mapping', code: 'wrong_type' };
  }
  const shape = schemaAt(schema, path.slice(0, -1));
  const known = (shape?.options ?? [shape]).flatMap((one) => Object.keys(one?.entries ?? {}));
  const nearest = nearestName(wrong, known);
  const own = wrong.length > MAX_KEY_LENGTH ? MASK : (redactedValue(wrong) ?? MASK);
  const problem = {
    key: parent === '' ? own : `${parent}.${own}`,
    expected: `one of the keys ${known.join(', ')}`,
    code: 'unknown_key' as const,
  };
  if (nearest !== undefined) {
    return {
      ...problem,
      expected: `${known.length > MAX_KEYS ? 'a key that there is' : problem.expected}; did you mean "${nearest}"?`,
      remedy: `Write ${nearest} if that is what you mean.`,
      meant: parent === '' ? nearest : `${parent}.${nearest}`,
    };
  }
  if (SECRET_NAMES.test(wrong)) return { ...problem, remedy: NO_SECRETS };
  const elsewhere = [...new Set(settingsOf(schema).map(({ name }) => name))].filter(
    (setting) => setting === wrong || setting.endsWith(`.${wrong}`),
  );
  if (elsewhere.length === 0 || elsewhere.length > 3) return problem;
  return { ...problem, remedy: `Put it where it belongs: ${elsewhere.join(' or ')}.` };
}

const MAX_KEY_LENGTH = 40;

/** Listed beside the probable one. */
const MAX_KEYS = 8;

function nameOf(path: readonly v.IssuePathItem[]): string {
  return path
    .map(({ key }) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .replace(/^\./, '');
}

/** Whether the provider defines the name above the value. */
function isFreeForm(schema: v.GenericSchema, path: readonly v.IssuePathItem[]): boolean {
  return path.slice(0, -1).some((_, index) => schemaAt(schema, path.slice(0, index + 1))?.type === 'record');
}

function schemaAt(schema: v.GenericSchema, path: readonly v.IssuePathItem[]): SchemaShape | undefined {
  let shape: SchemaShape | undefined = shapeOf(schema);
  for (const { key } of path) {
    const options = shape?.options ?? (shape === undefined ? [] : [shape]);
    const next = options.map((option) =>
      typeof key === 'number' ? option.item : ownEntry(option.entries, String(key)),
    );
    shape = unwrap(next.find((option) => option !== undefined));
  }
  return shape;
}

/** Ignores what objects inherit. */
function ownEntry(entries: SchemaShape['entries'], name: string): SchemaShape | undefined {
  return entries !== undefined && Object.hasOwn(entries, name) ? entries[name] : undefined;
}

function unwrap(shape: SchemaShape | undefined): SchemaShape | undefined {
  return shape?.type === 'optional' ? unwrap(shape.wrapped) : shape;
}

function settingsBelow(shape: SchemaShape | undefined, prefix: string): Setting[] {
  const inner = unwrap(shape);
  if (inner?.options !== undefined) return inner.options.flatMap((option) => settingsBelow(option, prefix));
  if (inner?.item !== undefined) return settingsBelow(inner.item, prefix);
  return Object.entries(inner?.entries ?? {}).flatMap(([name, entry]) => {
    const setting = prefix === '' ? name : `${prefix}.${name}`;
    return [{ name: setting, shape: entry }, ...settingsBelow(entry, setting)];
  });
}
