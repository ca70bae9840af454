/** Where the cluster keeps what it makes, and what its node is called. */

import { mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Short, because paths of sockets may have 108 bytes. Everything in it goes with the cluster. */
export const STATE = join(tmpdir(), 'token-sidecar-cluster');

export const PKI = join(STATE, 'pki');
export const CONFIGURATION = join(STATE, 'conf');
export const LOGS = join(STATE, 'log');
export const PIDS = join(STATE, 'pid');
export const CONTAINERD_SOCKET = join(STATE, 'containerd.sock');
/** Whom the API server believes besides its own certificates and accounts; it follows the file. */
export const AUTHENTICATION = join(CONFIGURATION, 'authentication.json');
export const KUBECONFIG = join(CONFIGURATION, 'admin.conf');

/** The network namespace of the node, with everything that runs on it. */
export const NETWORK_NAMESPACE = 'token-sidecar-node';
export const HOST_INTERFACE = 'tsc-host';
export const NODE_INTERFACE = 'tsc-node';

export const NODE_NAME = 'node0';

/** Begins with nothing: what an earlier cluster left is forgotten. */
export function makeDirectories(): void {
  rmSync(STATE, { recursive: true, force: true });
  for (const directory of [PKI, CONFIGURATION, LOGS, PIDS, join(CONFIGURATION, 'cni')]) {
    mkdirSync(directory, { recursive: true });
  }
}
