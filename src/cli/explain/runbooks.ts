import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const RUNBOOKS = join(import.meta.dirname, '../../../docs/runbooks');

/** Pages by the names of alerts, and their index as `README`. The bundle has the texts instead of this file. */
export function readRunbooks(directory = RUNBOOKS): Readonly<Record<string, string>> {
  const files = readdirSync(directory).sort();
  const pages = files.map((file) => [file.replace(/\.md$/, ''), readFileSync(join(directory, file), 'utf8')]);
  return Object.fromEntries(pages) as Record<string, string>;
}
