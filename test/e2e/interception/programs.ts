/** Where `install.ts` puts what clients are made of. */

import { join } from 'node:path';

export const CACHE = join(import.meta.dirname, '../../../.cache/interception');
export const CLIENTS = join(import.meta.dirname, 'clients');
export const PYTHON_PACKAGES = join(CACHE, 'python');
export const GO_PROGRAM = join(CACHE, 'bin/call');
export const RUST_TARGET = join(CACHE, 'rust');
export const RUST_PROGRAM = join(RUST_TARGET, 'debug/call');
