/** Puts into words what the schema finds wrong with the file's value. */

import type * as v from 'valibot';
import { MASK, shownValue } from '../platform/log/shown-text.ts';
import type { Problem, ProblemCode } from '../platform/problems.ts';
import { nearestName } from './suggestion.ts';
import { codeOfExpectation } from './values.ts';

/** The part of a valibot schema that tells which settings exist. */
interface SchemaShape {
  readonly type: string;
  readonly message?: string;
  readonly entries?: Readonly<Record<string, SchemaShape>>;
  readonly item?: SchemaShape;
  readonly wrapped?: SchemaShape;
  /** Of a union. */
  readonly options?: readonly SchemaShape[];
}

/** The names of settings that have a value of their own, at any depth: text after the name of a mapping may be anything. */
export function keysOf(schema: v.GenericSchema): ReadonlySet<string> {
  const settings = settingsOf(schema).filter(({ shape }) => !holdsMappings(shape));
  return new Set(settings.map(({ name }) => name.split('.').at(-1) as string));
}

/** Whether only a mapping, or a list of mappings, belongs there. */
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

/** Every setting, as messages name it, without list indices: `routes.match.host`. */
function settingsOf(schema: v.GenericSchema): Setting[] {
  return settingsBelow(shapeOf(schema), '');
}

function shapeOf(schema: v.GenericSchema): SchemaShape {
  return schema as unknown as SchemaShape;
}

/** Schemas that judge only the kind of a value. */
const OF_KINDS = new Set(['string', 'number', 'boolean', 'array', 'record', 'strict_object', 'union']);

const YES_AND_NO = 'Write true or false without quotes: in YAML 1.2 yes, no, on and off are text.';

/** Names that people give to values that belong in the mounted Secret. */
const SECRET_NAMES = /secret|password|passwd|private_?key$|^token$|api_?key/i;

const NO_SECRETS =
  "Put it into the Secret that is mounted at the credential's dir: this file holds no secrets.";

/** Replaces a union's own issue with those of the member that understood the value's kind. */
export function withInsideOfUnion(issue: v.BaseIssue<unknown>): v.BaseIssue<unknown>[] {
  const { type, issues, path, input } = issue;
  if (type !== 'union' || path === undefined || issues === undefined) return [issue];
  const kind = Array.isArray(input) ? 'array' : 'object';
  const inside = issues
    .filter((one) => one.path?.[0].type === kind)
    .map((one) => ({ ...one, path: [...path, ...(one.path ?? [])] }) as v.BaseIssue<unknown>);
  return inside.length === 0 ? [issue] : inside.flatMap(withInsideOfUnion);
}

export function describeIssue(schema: v.GenericSchema, issue: v.BaseIssue<unknown>): Problem {
  const path = issue.path ?? [];
  const key = nameOf(path);
  if (issue.type === 'strict_object' && issue.expected === 'never') return describeUnknownKey(schema, path);
  if (issue.input === undefined) {
    return { key, expected: schemaAt(schema, path)?.message ?? issue.message, code: 'missing_value' };
  }
  const described: Problem = {
    key,
    value:
      isFreeForm(schema, path) || holdsMappings(schemaAt(schema, path))
        ? kindOfValue(issue.input)
        : describeInput(issue.input),
    expected: issue.message,
    code: codeFor(issue),
  };
  const remedy = remedyFor(issue);
  return remedy === undefined ? described : { ...described, remedy };
}

function remedyFor({ type, input, message }: v.BaseIssue<unknown>): string | undefined {
  if (message === 'true or false' && typeof input === 'string') return YES_AND_NO;
  if (input === null) return 'Write a value behind the colon, or remove the line.';
  const isQuotable = ['number', 'boolean'].includes(typeof input) && codeOfExpectation(message) === undefined;
  return type === 'string' && isQuotable ? 'Put quotes around it: without them it is no text.' : undefined;
}

/** `a text`, `a list`: the kind of a value that may be a secret. */
export function kindOfValue(input: unknown): string {
  if (Array.isArray(input)) return 'a list';
  if (input === null) return 'nothing';
  return (
    { object: 'a mapping', string: 'a text', number: 'a number', boolean: 'true or false' }[
      typeof input as string
    ] ?? 'something else'
  );
}

/** Scalars as they are; a mapping or list by its kind, since its content may be anything. */
function describeInput(input: unknown): string {
  return typeof input === 'object' ? kindOfValue(input) : String(input);
}

function codeFor({ type, input, message }: v.BaseIssue<unknown>): ProblemCode {
  // A number without its unit, or a port without its host.
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
    return { key: parent, value: 'a list', expected: 'a mapping', code: 'wrong_type' };
  }
  const shape = schemaAt(schema, path.slice(0, -1));
  const known = (shape?.options ?? [shape]).flatMap((one) => Object.keys(one?.entries ?? {}));
  const nearest = nearestName(wrong, known);
  const own = wrong.length > MAX_KEY_LENGTH ? MASK : (shownValue(wrong) ?? MASK);
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

/** At most this many keys are listed beside the one that was probably meant. */
const MAX_KEYS = 8;

function nameOf(path: readonly v.IssuePathItem[]): string {
  return path
    .map(({ key }) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .replace(/^\./, '');
}

/** Whether the value stands under a name that the provider defines. */
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

/** A setting of this name, ignoring what every object inherits. */
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
