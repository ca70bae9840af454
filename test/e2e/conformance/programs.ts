/** Where `install.ts` puts the programs of others' suites. */

import { join } from 'node:path';

export const CACHE = join(import.meta.dirname, '../../../.cache/conformance');

/** Those that go.mod names. */
export const GO_PROGRAMS = join(CACHE, 'bin');

export function goProgram(name: string): string {
  return join(GO_PROGRAMS, name);
}
