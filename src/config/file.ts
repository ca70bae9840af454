/** Reads the configuration file: YAML or JSON text in, a checked value and every problem out. */

import * as v from 'valibot';
import { readBoundedFile } from '../bounded-file.ts';
import { messageOf, systemCodeOf } from '../errors.ts';
import { type FileConfig, fileSchema } from './file-schema.ts';
import type { Problem } from './problems.ts';
import { didYouMean } from './settings.ts';
import { ALIASES, expectedYaml } from './yaml-mistakes.ts';

/** A ConfigMap holds at most 1 MiB. */
const MAX_FILE_BYTES = 1024 * 1024;

/** What could be understood of the file. What could not is in `problems`. */
export interface FileReading {
  readonly config: FileConfig;
  /** False when so much is wrong that what is missing cannot be told from what was not understood. */
  readonly understood: boolean;
}

const NOTHING_UNDERSTOOD: FileReading = { config: {}, understood: false };

/** @param key the flag or variable that names the file. */
export async function readConfigFile(path: string, key: string, problems: Problem[]): Promise<FileReading> {
  let text: string;
  try {
    text = await readBoundedFile(path, MAX_FILE_BYTES);
  } catch (error) {
    const why = systemCodeOf(error) ?? messageOf(error);
    problems.push({ key, value: path, expected: `a readable file (${why})` });
    return NOTHING_UNDERSTOOD;
  }
  return await parseConfig(text, path, problems);
}

/** @param path names the file in messages. */
export async function parseConfig(text: string, path: string, problems: Problem[]): Promise<FileReading> {
  // Loaded here, so that a sidecar without a file does not carry the parser.
  const { parseDocument } = await import('yaml');
  const document = parseDocument(text, { uniqueKeys: true, strict: true });
  if (document.errors.length > 0) {
    for (const error of document.errors) {
      const [start] = error.linePos ?? [];
      const key = start === undefined ? path : `${path}:${start.line}:${start.col}`;
      problems.push({ key, expected: expectedYaml('valid YAML or JSON', error.code) });
    }
    return NOTHING_UNDERSTOOD;
  }
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 100 }) ?? {};
  } catch {
    problems.push({ key: path, expected: ALIASES });
    return NOTHING_UNDERSTOOD;
  }
  if (Array.isArray(value)) {
    problems.push({ key: '(file)', value: describeInput(value), expected: 'a mapping of settings' });
    return NOTHING_UNDERSTOOD;
  }
  const config = readShape(fileSchema, value, problems);
  return config === undefined ? NOTHING_UNDERSTOOD : { config, understood: true };
}

/**
 * As much of a value as a schema understands; undefined where so much is wrong that nothing can be told of the rest.
 * @param value is changed: what is wrong is taken out and the rest read again, so that the checks across settings report in the same run.
 */
export function readShape<const Schema extends v.GenericSchema>(
  schema: Schema,
  value: unknown,
  problems: Problem[],
): v.InferOutput<Schema> | undefined {
  for (;;) {
    const result = v.safeParse(schema, value);
    if (result.success) return result.output;
    problems.push(...result.issues.flatMap((issue) => describeIssue(schema, issue)));
    if (!result.issues.every((issue) => takeOut(value, issue.path))) return undefined;
  }
}

/** Removes the wrong setting from its mapping; false where there is none to remove (a required one is missing). */
function takeOut(root: unknown, path: readonly v.IssuePathItem[] | undefined): boolean {
  const wrong = path?.at(-1);
  if (path === undefined || wrong === undefined) return false;
  let parent = root;
  for (const { key } of path.slice(0, -1)) parent = (parent as Record<string, unknown>)[String(key)];
  if (typeof parent !== 'object' || parent === null || Array.isArray(parent)) return false;
  return (
    Object.hasOwn(parent, String(wrong.key)) && delete (parent as Record<string, unknown>)[String(wrong.key)]
  );
}

function describeIssue(schema: v.GenericSchema, issue: v.BaseIssue<unknown>): Problem[] {
  const inside = insideOfUnion(issue);
  if (inside.length > 0) return inside.flatMap((one) => describeIssue(schema, one));
  // Other members of a union say less than the union itself.
  const key = v.getDotPath(issue)?.replace(/\.(\d+)(?=\.|$)/g, '[$1]') ?? '(file)';
  const isUnknownKey = issue.type === 'strict_object' && issue.expected === 'never';
  if (isUnknownKey) {
    const wrong = String(issue.path?.at(-1)?.key);
    const known = knownKeys(schema, issue.path ?? []);
    return [{ key, expected: `one of the keys ${known.join(', ')}${didYouMean(wrong, known)}` }];
  }
  if (issue.input === undefined)
    return [{ key, expected: schemaAt(schema, issue.path ?? [])?.message ?? issue.message }];
  return [{ key, value: describeInput(issue.input), expected: issue.message }];
}

/** What the member of a union found that understood the value's kind, with the whole path. */
function insideOfUnion({ type, issues, path, input }: v.BaseIssue<unknown>): v.BaseIssue<unknown>[] {
  if (type !== 'union' || path === undefined || issues === undefined) return [];
  const kind = Array.isArray(input) ? 'array' : 'object';
  return issues
    .filter((one) => one.path?.[0].type === kind)
    .map((one) => ({ ...one, path: [...path, ...(one.path ?? [])] }) as v.BaseIssue<unknown>);
}

/** Scalars as they are; a mapping or list by its kind, since what is inside may be anything. */
function describeInput(input: unknown): string {
  if (Array.isArray(input)) return 'a list';
  return typeof input === 'object' && input !== null ? 'a mapping' : String(input);
}

interface SchemaShape {
  readonly type: string;
  readonly message?: string;
  readonly entries?: Readonly<Record<string, SchemaShape>>;
  readonly item?: SchemaShape;
  readonly wrapped?: SchemaShape;
  readonly options?: readonly SchemaShape[];
}

/** The keys that the mapping at the parent of `path` may have. */
function knownKeys(schema: v.GenericSchema, path: readonly v.IssuePathItem[]): string[] {
  const parent = schemaAt(schema, path.slice(0, -1));
  const shapes = parent?.options ?? [parent];
  return shapes.flatMap((shape) => Object.keys(shape?.entries ?? {}));
}

function schemaAt(schema: v.GenericSchema, path: readonly v.IssuePathItem[]): SchemaShape | undefined {
  let shape: SchemaShape | undefined = schema as unknown as SchemaShape;
  for (const { key } of path) {
    const options = shape?.options ?? (shape === undefined ? [] : [shape]);
    const next = options.map((option) =>
      typeof key === 'number' ? option.item : ownEntry(option.entries, String(key)),
    );
    shape = unwrap(next.find((option) => option !== undefined));
  }
  return shape;
}

/** A setting of the name, and nothing that every object has. */
function ownEntry(entries: SchemaShape['entries'], name: string): SchemaShape | undefined {
  return entries !== undefined && Object.hasOwn(entries, name) ? entries[name] : undefined;
}

function unwrap(shape: SchemaShape | undefined): SchemaShape | undefined {
  return shape?.type === 'optional' ? unwrap(shape.wrapped) : shape;
}
