/** Programs of others that real clusters have besides Kubernetes, each compiled from the Go module proxy at one version. */

import { join } from 'node:path';
import { CACHE } from '../node/versions.ts';

interface Addon {
  readonly module: string;
  readonly version: string;
  /** Of this module, each the directory of one program. */
  readonly programs: readonly string[];
  /** Lines of go.sum for modules that the public database of checksums does not know. */
  readonly sums?: readonly string[];
}

const POLICIES = 'sigs.k8s.io/kube-network-policies';
const POLICY_API = 'sigs.k8s.io/network-policy-api v0.1.6-0.20250401132235-45061d10895e';

export const ADDONS = {
  /** The last one whose programs belong to its main module, as the module proxy has it. */
  'cert-manager': {
    module: 'github.com/cert-manager/cert-manager',
    version: 'v1.11.5',
    programs: ['cmd/controller', 'cmd/cainjector', 'cmd/webhook'],
  },
  'prometheus-operator': {
    module: 'github.com/prometheus-operator/prometheus-operator',
    version: 'v0.85.0',
    programs: ['cmd/operator'],
  },
  /** Of version 3.5: Debian's cannot discover anything by the API of Kubernetes. */
  prometheus: {
    module: 'github.com/prometheus/prometheus',
    version: 'v0.305.0',
    programs: ['cmd/prometheus'],
  },
  'metrics-server': {
    module: 'sigs.k8s.io/metrics-server',
    version: 'v0.7.2',
    programs: ['cmd/metrics-server'],
  },
  /** Enforces NetworkPolicies by a queue of the kernel, whatever network pods have. */
  'network-policies': {
    module: POLICIES,
    version: 'v0.8.0',
    programs: ['cmd'],
    sums: [
      `${POLICIES} v0.8.0 h1:dzecRNzdmg+VmHEQWTIjxnCgf412J+8CKHqbKgCiWkk=`,
      `${POLICIES} v0.8.0/go.mod h1:QNAmb/exAiL032oNq0/QhfYl5H+jEFFDF0qVXpIOkeI=`,
      // As its own go.sum has them.
      `${POLICY_API} h1:b5Vm5aa0I37gToQmFhQ+gQMZVsPsxSiJzxZWtSCs99w=`,
      `${POLICY_API}/go.mod h1:8J+z3UB9HgeqbmYprl6OKIobEDv27A3KRHPcteJ61rw=`,
    ],
  },
} as const satisfies Readonly<Record<string, Addon>>;

export type AddonName = keyof typeof ADDONS;

/** One directory a version: what is in it is never replaced. */
export function addonBin(name: AddonName): string {
  return join(CACHE, `${name}-${ADDONS[name].version}`);
}

/** @param program its directory in the module, as in `ADDONS`. */
export function addonProgram(name: AddonName, program: string): string {
  return join(addonBin(name), program.replaceAll('/', '-'));
}
