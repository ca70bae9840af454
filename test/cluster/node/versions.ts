/** What the cluster is made of, and where what was compiled for it is kept. */

import { homedir } from 'node:os';
import { join } from 'node:path';

/** Another one by the variable KUBERNETES. */
export const KUBERNETES = process.env['KUBERNETES'] ?? 'v1.34.4';
/** 34 of v1.34.4. */
export const MINOR = Number(KUBERNETES.split('.')[1]);
export const COREDNS = 'v1.12.4';
export const HELM = 'v3.22.0';

/** Outside the tree, so that a fresh clone finds what an earlier one compiled. */
export const CACHE =
  process.env['TOKEN_SIDECAR_CLUSTER_CACHE'] ??
  join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'token-sidecar-cluster');

/** One directory a version: what is in it is never replaced. */
export const KUBERNETES_BIN = join(CACHE, `kubernetes-${KUBERNETES}`);
export const COREDNS_BIN = join(CACHE, `coredns-${COREDNS}`);
export const HELM_BIN = join(CACHE, `helm-${HELM}`);

/** Where Debian puts the programs of the container network interface. */
export const CNI_BIN = '/usr/lib/cni';
