import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';

/** The page's script: `browser.ts` without its types. The bundle replaces this file with a minified version of it. */
export function browserScript(): string {
  return stripTypeScriptTypes(readFileSync(join(import.meta.dirname, 'browser.ts'), 'utf8'));
}
