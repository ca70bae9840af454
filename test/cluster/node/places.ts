/** Where the cluster keeps what it makes. */

import { mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Short, because paths of sockets may have 108 bytes. Everything in it goes with the cluster. */
export const STATE = join(tmpdir(), 'token-sidecar-cluster');

export const PKI = join(STATE, 'pki');
export const CONFIGURATION = join(STATE, 'conf');
export const LOGS = join(STATE, 'log');
export const PIDS = join(STATE, 'pid');
/** Archives of all that pods run. */
export const IMAGES = join(STATE, 'images');
/** Whom the API server believes besides its own certificates and accounts; it follows the file. */
export const AUTHENTICATION = join(CONFIGURATION, 'authentication.json');
export const KUBECONFIG = join(CONFIGURATION, 'admin.conf');

/** Begins with nothing: what an earlier cluster left is forgotten. */
export function makeDirectories(): void {
  rmSync(STATE, { recursive: true, force: true });
  for (const directory of [PKI, CONFIGURATION, LOGS, PIDS, IMAGES]) mkdirSync(directory, { recursive: true });
}
