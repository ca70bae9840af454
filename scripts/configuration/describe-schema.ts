/** The JSON Schema of the configuration file with what its keys are for. */

import { SETTINGS } from './settings.ts';

/** As much of JSON Schema as there is here. */
export interface Schema {
  description?: string;
  default?: unknown;
  readonly type?: string;
  readonly minimum?: number;
  readonly maximum?: number;
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
