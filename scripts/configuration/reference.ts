/** The reference of the configuration file as a page: a list for each mapping of settings, with what each takes. */

import type { Schema } from './describe-schema.ts';
import { SETTINGS } from './settings.ts';

/** Mappings with no more keys than this stand in the list of what they belong to. */
const INLINE_KEYS = 3;

/** Sections whose rows others have, too. */
const REPEATED = ['routes', 'credentials[].assertion'];

interface Row {
  /** From the section's beginning: `timeouts.connect`. */
  readonly key: string;
  /** From the file's beginning: `routes[].timeouts.connect`. */
  readonly path: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
  /** Heading of the section that has its keys. */
  readonly section?: string;
}

interface Section {
  /** `credentials[].renewal` */
  readonly path: string;
  readonly level: 2 | 3;
  readonly rows: readonly Row[];
}

/** @param schema without texts: its descriptions are what each value is expected to be. */
export function configurationReference(schema: Schema, head: readonly string[]): string {
  const known = new Map<string, string>();
  const sections = Object.entries(schema.properties ?? {})
    .filter(([, inner]) => holdsSettings(inner))
    .flatMap(([name, inner]) => sectionsOf(name, inner, 2, known));
  const topLevel: Section = {
    path: 'Top level',
    level: 2,
    rows: Object.entries(schema.properties ?? {}).map(([name, inner]) => ({
      key: name,
      path: name,
      schema: inner,
      isRequired: false,
      ...(holdsSettings(inner) ? { section: name } : {}),
    })),
  };
  const repeated = sections.filter(({ path }) => REPEATED.includes(path));
  return [...head, ...[topLevel, ...sections].flatMap((section) => pageOf(section, repeated))].join('\n');
}

/** A mapping's own, or that of a list's elements; of alternatives the first, since the others are lists of it. */
function keysOf(schema: Schema): Schema | undefined {
  if (schema.properties !== undefined) return schema;
  if (schema.items !== undefined) return keysOf(schema.items);
  return schema.anyOf?.map(keysOf).find((keys) => keys !== undefined);
}

function holdsSettings(schema: Schema): boolean {
  return keysOf(schema) !== undefined;
}

/**
 * @param path of the mapping, or of the list of them, that has a heading.
 * @param known the heading of each mapping that has a section, by all that is said of it: it is told of once.
 */
function sectionsOf(path: string, schema: Schema, level: 2 | 3, known: Map<string, string>): Section[] {
  const rows: Row[] = [];
  const inner: Section[] = [];
  const collect = (keys: Schema, ownPath: string, ownKey: string): void => {
    for (const [name, child] of Object.entries(keys.properties ?? {})) {
      const isRequired = keys.required?.includes(name) === true;
      const row = { key: `${ownKey}${name}`, path: `${ownPath}.${name}`, schema: child, isRequired };
      const childKeys = keysOf(child);
      const count = Object.keys(childKeys?.properties ?? {}).length;
      if (childKeys === undefined) rows.push(row);
      else if (child.type === 'object' && count <= INLINE_KEYS) {
        rows.push(row);
        collect(childKeys, row.path, `${row.key}.`);
      } else {
        const said = allSaidOf(row.path, childKeys);
        const section = known.get(said) ?? elementOf(row.path, child);
        rows.push({ ...row, section });
        if (known.has(said)) continue;
        known.set(said, section);
        inner.push(...sectionsOf(row.path, child, 3, known));
      }
    }
  };
  const keys = keysOf(schema);
  if (keys !== undefined) collect(keys, elementOf(path, schema), '');
  return [{ path: level === 2 ? path : elementOf(path, schema), level, rows }, ...inner];
}

function elementOf(path: string, schema: Schema): string {
  return schema.type === 'array' ? `${path}[]` : path;
}

/** What its values may be, and the texts of its keys. */
function allSaidOf(path: string, keys: Schema): string {
  const texts = Object.entries(SETTINGS).flatMap(([other, { text }]) =>
    other.startsWith(`${path}.`) || other.startsWith(`${path}[].`)
      ? [[other.slice(path.length).replace('[]', ''), text]]
      : [],
  );
  return JSON.stringify([keys, texts]);
}

/** @param repeated what others have in common with these is not said again. */
function pageOf({ path, level, rows }: Section, repeated: readonly Section[]): string[] {
  const shared = repeated
    .filter((section) => section.path !== path)
    .map((section) => ({
      path: section.path,
      rows: rows.filter((row) => section.rows.some((other) => isAlike(row, other))),
    }));
  const common = new Set(shared.flatMap((section) => section.rows));
  return [
    `${'#'.repeat(level)} ${path}`,
    '',
    ...rows.filter((row) => !common.has(row)).map(rowOf),
    ...shared.filter((section) => section.rows.length > 0).map(sharedRowOf),
    '',
  ];
}

function sharedRowOf({ path, rows }: Pick<Section, 'path' | 'rows'>): string {
  const keys = outermost(rows).map((key) => `\`${key}\``);
  return `- ${keys.join(', ')}: as in [${path}](#${anchorOf(path)})`;
}

/** Without those inside of another. */
function outermost(rows: readonly Row[]): string[] {
  const keys = rows.map(({ key }) => key);
  return keys.filter((key) => !keys.some((other) => key.startsWith(`${other}.`)));
}

function isAlike(row: Row, other: Row): boolean {
  return row.key === other.key && rowOf(row) === rowOf(other);
}

/** A key with its default, as the file has it, and what else it takes. */
function rowOf({ key, path, schema, isRequired, section }: Row): string {
  const setting = SETTINGS[path];
  const standard = setting?.default === undefined ? '' : `: ${shown(setting.default)}`;
  const kind =
    section === undefined ? takes(schema, setting?.default) : `[${takes(schema)}](#${anchorOf(section)})`;
  const what = [isRequired ? 'required' : '', kind].filter((part) => part !== '').join(', ');
  const text = setting === undefined ? '' : `: ${textOf(setting)}`;
  return `- \`${key}${standard}\`${what === '' ? '' : ` (${what})`}${text}`;
}

function textOf({ text, see }: { readonly text: string; readonly see?: string }): string {
  const said = text.replaceAll('|', '\\|').replaceAll('*', '\\*');
  if (see === undefined) return said;
  return `${said} [More](${see}).`;
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** What stands for a value, with its unit and bounds; nothing for text and for what the default shows. */
function takes(
  { description: expected, enum: words, type, minimum, maximum, anyOf, items }: Schema,
  standard?: unknown,
): string {
  if (words !== undefined) {
    const others = words.filter((word) => word !== standard).map((word) => `\`${shown(word)}\``);
    return `${standard === undefined ? '' : 'or '}${others.join(', ')}`;
  }
  if (expected !== undefined)
    return expected
      .replace(/^Expected: (an? )?/, '')
      .replace('size in bytes', 'size')
      .replace(/,? such as .*$/, '')
      .replace(/( with a port from 0 to 65535)?\.?$/, '');
  if (type === 'object') return 'settings';
  if (type === 'string' || type === 'boolean') return '';
  if (type === 'array') return items?.type === 'integer' ? 'list of integers' : 'list';
  if (type === undefined && anyOf !== undefined) return 'settings, or a list of them';
  const from = minimum === undefined ? '' : ` from ${minimum}`;
  const to = maximum === undefined ? '' : ` to ${maximum}`;
  return `${type}${from}${to}`;
}

/** As GitHub makes it of a heading. */
function anchorOf(heading: string): string {
  return heading.toLowerCase().replace(/[^\p{L}\p{N}_-]/gu, '');
}
