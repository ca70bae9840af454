import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type Schema, settingsOf } from '../scripts/configuration/describe-schema.ts';
import { SETTINGS } from '../scripts/configuration/settings.ts';

const ROOT = join(import.meta.dirname, '..');
const schema = JSON.parse(readFileSync(join(ROOT, 'schema/token-sidecar.schema.json'), 'utf8')) as Schema;
const page = readFileSync(join(ROOT, 'docs/reference/configuration.md'), 'utf8');

const anchorOf = (heading: string): string => heading.toLowerCase().replace(/[[\].]/g, '');

/** Rows by their keys, of each section by its anchor. */
const SECTIONS = new Map(
  page
    .split(/^##+ /m)
    .slice(1)
    .map((section): [string, Map<string, string>] => {
      const rows = [...section.matchAll(/^- ((?:`[^`]+`(?:, )?)+)(.*)$/gm)].flatMap(
        ([, keys = '', rest = '']) =>
          [...keys.matchAll(/`([^`:]+)[^`]*`/g)].map(([all, key = '']): [string, string] => [
            key,
            `${all}${rest}`,
          ]),
      );
      return [anchorOf(section.slice(0, section.indexOf('\n'))), new Map(rows)];
    }),
);

/** The row of a key, found as a reader finds it: from the top, by the links to sections. */
function rowOf(path: string): string | undefined {
  let [section, key, row]: [string, string, string | undefined] = ['top level', '', undefined];
  for (const name of path.replaceAll('[]', '').split('.')) {
    key = key === '' ? name : `${key}.${name}`;
    row = SECTIONS.get(section)?.get(key);
    const [, other] = /: as in \[.*\]\(#([^)]+)\)$/.exec(row ?? '') ?? [];
    if (other !== undefined) row = SECTIONS.get(other)?.get(key);
    const [, link] = / \((?:required, )?\[[^\]]*\]\(#([^)]+)\)/.exec(row ?? '') ?? [];
    if (row !== undefined && link !== undefined) [section, key] = [link, ''];
    else if (other !== undefined) section = other;
  }
  return row;
}

const PATHS = [...new Set(settingsOf(schema).map(({ path }) => path))];

it.each(PATHS)('%s has a row with its text and its default', (path) => {
  const row = rowOf(path);
  expect(row).toBeDefined();
  const { text = '', default: standard } = SETTINGS[path] ?? {};
  expect(row?.replaceAll('\\', '')).toContain(text);
  if (standard !== undefined) {
    expect(row).toContain(`: ${typeof standard === 'string' ? standard : JSON.stringify(standard)}\``);
  }
});
