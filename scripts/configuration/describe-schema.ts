/** The JSON Schema of the configuration file with what its keys are for, and the reference page of every key. */

import { SETTINGS } from './settings.ts';

/** As much of JSON Schema as there is here. */
export interface Schema {
  description?: string;
  default?: unknown;
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly required?: readonly string[];
}

export interface SettingNode {
  readonly path: string;
  readonly schema: Schema;
  readonly required: boolean;
}

/** Every key, those inside of lists and of alternatives too; one that two alternatives have comes twice. */
export function settingsOf(schema: Schema, path = ''): SettingNode[] {
  const { properties = {}, items, anyOf = [], required = [] } = schema;
  return [
    ...Object.entries(properties).flatMap(([name, inner]): SettingNode[] => {
      const own = path === '' ? name : `${path}.${name}`;
      return [{ path: own, schema: inner, required: required.includes(name) }, ...settingsOf(inner, own)];
    }),
    ...(items === undefined ? [] : settingsOf(items, `${path}[]`)),
    ...anyOf.flatMap((alternative) => settingsOf(alternative, path)),
  ];
}

/**
 * Writes texts and defaults into the schema.
 * @throws {Error} for a key without a text, and for a text without a key.
 */
export function describeSettings(schema: Schema): void {
  const nodes = settingsOf(schema);
  const known = new Set(nodes.map(({ path }) => path));
  const strangers = Object.keys(SETTINGS).filter((path) => !known.has(path));
  if (strangers.length > 0) throw new Error(`there is no key ${strangers.join(', ')}`);
  for (const { path, schema: node } of nodes) {
    const setting = SETTINGS[path];
    if (setting === undefined)
      throw new Error(`${path}: say in scripts/configuration/settings.ts what it is for`);
    const expected = node.description;
    node.description = expected === undefined ? setting.text : `${setting.text} ${expected}`;
    if (setting.default !== undefined) node.default = setting.default;
  }
}

/** A table for each top-level key. */
export function settingsReference(schema: Schema, generated: string): string {
  const seen = new Set<string>();
  const nodes = settingsOf(schema).filter(({ path }) => !seen.has(path) && seen.add(path));
  const sections = Object.keys(schema.properties ?? {}).map((name) => {
    const own = nodes.filter(
      ({ path }) => path === name || path.startsWith(`${name}.`) || path.startsWith(`${name}[`),
    );
    return [`## ${name}`, '', '| key | takes | default | |', '|---|---|---|---|', ...own.map(rowOf)].join(
      '\n',
    );
  });
  return [
    '# Every key of the configuration file',
    '',
    generated,
    '',
    'As `schema/token-sidecar.schema.json` has it, by which editors complete and check the file. What hangs together is explained in',
    '[configuration](configuration.md).',
    '',
    ...sections.map((section) => `${section}\n`),
  ].join('\n');
}

function rowOf({ path, schema, required }: SettingNode): string {
  const setting = SETTINGS[path];
  const standard =
    setting?.default === undefined ? (required ? 'required' : '') : `\`${shown(setting.default)}\``;
  return `| \`${path}\` | ${takes(schema)} | ${standard} | ${setting?.text ?? ''} |`;
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function takes({ enum: words, type, anyOf }: Schema): string {
  if (words !== undefined) return words.map((word) => `\`${shown(word)}\``).join(', ');
  if (type === 'object') return 'settings';
  if (type === 'array') return 'a list';
  return type === undefined && anyOf !== undefined ? 'settings, or a list' : (type ?? '');
}
