import { join } from 'node:path';

/** Where `install.ts` puts the stories of hpack-test-case: a directory of each encoder, a file of each story. */
export const STORIES = join(import.meta.dirname, '../../../.cache/hpack-test-case');
