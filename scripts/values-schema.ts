/** What an editor shows of the chart's values: the schema's `description` and `default`, taken from values.yaml. */

import { parse } from 'yaml';

interface Schema {
  description?: string;
  default?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema | readonly Schema[];
  readonly additionalProperties?: boolean | Schema;
  readonly definitions?: Readonly<Record<string, Schema>>;
  readonly $ref?: string;
}

/**
 * @param schema JSON whose constraints are kept as they are.
 * @param values YAML with a comment above each key, on one line.
 * @returns the schema with both for every key.
 * @throws {Error} when a key has no comment, or stands in only one of the two; when one that values.yaml does not spell out, such
 *   as those of a toleration, has no description in the schema.
 */
export function describeValuesSchema(schema: string, values: string): string {
  const described = JSON.parse(schema) as Schema;
  describe(described, parse(values) as unknown, commentsOf(values), []);
  requireDescriptions(described, '');
  return `${JSON.stringify(described, null, 2)}\n`;
}

function describe(
  of: Schema,
  value: unknown,
  comments: ReadonlyMap<string, string>,
  path: readonly string[],
): void {
  const key = path.join('.');
  if (path.length > 0) {
    const comment = comments.get(key);
    if (!comment) throw new Error(`values.yaml: ${key} has no comment`);
    of.description = comment;
  }
  if (of.properties === undefined || !isMap(value) || Object.keys(value).length === 0) {
    of.default = value;
    return;
  }
  const names = new Set([...Object.keys(of.properties), ...Object.keys(value)]);
  for (const name of names) {
    const inner = of.properties[name];
    if (inner === undefined) throw new Error(`values.schema.json lacks ${[...path, name].join('.')}`);
    if (!Object.hasOwn(value, name)) throw new Error(`values.yaml lacks ${[...path, name].join('.')}`);
    describe(inner, value[name], comments, [...path, name]);
  }
}

function requireDescriptions(of: Schema, path: string): void {
  for (const [name, inner] of Object.entries(of.properties ?? {})) {
    const key = path === '' ? name : `${path}.${name}`;
    if (inner.description === undefined && inner.$ref === undefined) {
      throw new Error(`values.schema.json: ${key} has no description`);
    }
    requireDescriptions(inner, key);
  }
  for (const [name, inner] of Object.entries(of.definitions ?? {})) requireDescriptions(inner, `#${name}`);
  for (const inner of [of.items ?? []].flat()) requireDescriptions(inner, `${path}[]`);
  if (typeof of.additionalProperties === 'object') requireDescriptions(of.additionalProperties, `${path}.*`);
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The comment above each key, by the key's path. */
function commentsOf(values: string): ReadonlyMap<string, string> {
  const comments = new Map<string, string>();
  const path: { readonly name: string; readonly indent: number }[] = [];
  let comment: string | undefined;
  for (const line of values.split('\n')) {
    const [, text] = /^ *# (.*)$/.exec(line) ?? [];
    if (text !== undefined) {
      comment = text;
      continue;
    }
    const [, spaces, name] = /^( *)([A-Za-z][A-Za-z0-9]*):/.exec(line) ?? [];
    if (spaces !== undefined && name !== undefined) {
      while ((path.at(-1)?.indent ?? -1) >= spaces.length) path.pop();
      path.push({ name, indent: spaces.length });
      if (comment !== undefined) comments.set(path.map((key) => key.name).join('.'), comment);
    }
    comment = undefined;
  }
  return comments;
}
