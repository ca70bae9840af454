/** The parts of a Pod (core/v1) that the injector reads. */

import type { OwnerReference } from '../../platform/kubernetes/api.ts';
import type { Problem } from '../../platform/problems.ts';

export interface Pod {
  readonly metadata?: PodMetadata;
  readonly spec?: PodSpec;
}

interface PodMetadata {
  readonly name?: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly annotations?: Readonly<Record<string, string>> | null;
  readonly labels?: Readonly<Record<string, string>> | null;
  readonly ownerReferences?: readonly OwnerReference[] | null;
}

export interface PodSpec {
  readonly containers?: readonly Container[] | null;
  readonly initContainers?: readonly Container[] | null;
  readonly volumes?: readonly Volume[] | null;
  readonly imagePullSecrets?: readonly { readonly name?: string }[] | null;
  readonly securityContext?: PodSecurityContext | null;
  readonly serviceAccountName?: string | null;
  readonly hostNetwork?: boolean;
  readonly hostAliases?: readonly HostAlias[] | null;
  readonly hostPID?: boolean;
  readonly shareProcessNamespace?: boolean;
  readonly restartPolicy?: string;
  readonly terminationGracePeriodSeconds?: number | null;
  readonly nodeSelector?: Readonly<Record<string, string>> | null;
  readonly os?: { readonly name?: string } | null;
}

interface PodSecurityContext {
  readonly fsGroup?: number | null;
  readonly runAsUser?: number | null;
  readonly fsGroupChangePolicy?: string | null;
  readonly sysctls?: readonly { readonly name: string; readonly value: string }[] | null;
}

interface HostAlias {
  readonly ip?: string;
  readonly hostnames?: readonly string[] | null;
}

export interface Container {
  readonly name: string;
  readonly restartPolicy?: string;
  readonly env?: readonly EnvironmentVariable[] | null;
  readonly envFrom?: readonly object[] | null;
  readonly ports?: readonly ContainerPort[] | null;
  readonly securityContext?: { readonly runAsUser?: number | null } | null;
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath?: string | null }[] | null;
}

export interface EnvironmentVariable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: object | null;
}

interface ContainerPort {
  readonly name?: string;
  readonly containerPort: number;
}

interface Volume {
  readonly name: string;
  readonly persistentVolumeClaim?: object | null;
}

/** Labels only if known. */
export interface Namespace {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Lists of the API may be null or absent. */
export function itemsOf<T>(list: readonly T[] | null | undefined): readonly T[] {
  return list ?? [];
}

/** With its place: `spec.containers[0]`. */
export function containersOf(
  spec: PodSpec,
): readonly { readonly path: string; readonly container: Container }[] {
  return (['containers', 'initContainers'] as const).flatMap((list) =>
    itemsOf(spec[list]).map((container, index) => ({ path: `spec.${list}[${index}]`, container })),
  );
}

export function controllerOf(pod: Pod): OwnerReference | undefined {
  return itemsOf(pod.metadata?.ownerReferences).find(({ controller }) => controller === true);
}

export const CONTAINER = {
  sidecar: 'token-sidecar',
  /** Ends once the system sends connections to the sidecar. */
  redirect: 'token-sidecar-redirect',
} as const;

export const CREDENTIALS = {
  volume: 'token-sidecar-credentials',
  directory: '/var/run/secrets/token-sidecar',
} as const;

export const CONFIG = {
  volume: 'token-sidecar-config',
  directory: '/etc/token-sidecar',
  key: 'token-sidecar.yaml',
} as const;

export const CA = {
  volume: 'token-sidecar-ca',
  directory: '/etc/token-sidecar-ca',
  key: 'ca.crt',
} as const;

/** In memory: the sidecar writes it, the app's containers read it. */
export const TRUST = {
  volume: 'token-sidecar-trust',
  directory: '/var/run/token-sidecar/trust',
} as const;

export const PORT = {
  /** On loopback. */
  proxy: 15_080,
  admin: 15_081,
  tokenEndpoint: 15_082,
  redirect: 15_083,
} as const;

/** PodMonitors select by this name. */
export const ADMIN_PORT_NAME = 'token-admin';

/** In memory: the sidecar writes it, the app's containers read it. */
export const TOKENS = {
  volume: 'token-sidecar-tokens',
  directory: '/var/run/token-sidecar/tokens',
} as const;

export const USER = {
  sidecar: 65_532,
  /** Redirection recognizes the sidecar by its user, and many app images have the usual one. Below 65536, for user namespaces. */
  redirect: 15_083,
} as const;

/**
 * Ports that the sidecar needs.
 * @param expectedAt what a container should have instead; undefined if it may keep the port.
 */
export function takenPorts(
  spec: PodSpec,
  expectedAt: (port: number) => string | undefined,
): readonly Problem[] {
  return containersOf(spec).flatMap(({ path, container: { ports } }) =>
    itemsOf(ports).flatMap(({ containerPort }, index) => {
      const expected = expectedAt(containerPort);
      if (expected === undefined) return [];
      return [{ key: `${path}.ports[${index}].containerPort`, value: String(containerPort), expected }];
    }),
  );
}

export function takenPort(spec: PodSpec, port: number, what: string): readonly Problem[] {
  return takenPorts(spec, (one) => (one === port ? `a port other than ${port}, ${what}` : undefined));
}
