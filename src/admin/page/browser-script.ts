import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';

/** What the page runs: `browser.ts` without its types. The bundle has it in place of this file, and shorter. */
export function browserScript(): string {
  return stripTypeScriptTypes(readFileSync(join(import.meta.dirname, 'browser.ts'), 'utf8'));
}
