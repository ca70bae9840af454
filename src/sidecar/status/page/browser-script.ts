import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';

/** `browser.ts` without its types. The bundle has a minified version instead of this file. */
export function browserScript(): string {
  return stripTypeScriptTypes(readFileSync(join(import.meta.dirname, 'browser.ts'), 'utf8'));
}
