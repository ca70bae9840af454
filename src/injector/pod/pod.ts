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

// Also of a sidecar written by hand.

export const CONTAINER_NAME = 'token-sidecar';

/** Ends once the system sends connections to the sidecar. */
export const REDIRECT_CONTAINER_NAME = 'token-sidecar-redirect';

export const CREDENTIALS_VOLUME = 'token-sidecar-credentials';
export const CREDENTIALS_PATH = '/var/run/secrets/token-sidecar';

export const CONFIG_VOLUME = 'token-sidecar-config';
export const CONFIG_DIRECTORY = '/etc/token-sidecar';
export const CONFIG_KEY = 'token-sidecar.yaml';

export const CA_VOLUME = 'token-sidecar-ca';
export const CA_DIRECTORY = '/etc/token-sidecar-ca';
export const CA_KEY = 'ca.crt';

export const AUTHORITIES_PATH = '/etc/token-sidecar-authorities';

/** In memory: the sidecar writes it, the app's containers read it. */
export const TRUST_VOLUME = 'token-sidecar-trust';
export const TRUST_DIRECTORY = '/var/run/token-sidecar/trust';

/** On loopback. */
export const PROXY_PORT = 15_080;
/** PodMonitors select by this name. */
export const ADMIN_PORT = 15_081;
export const TOKEN_ENDPOINT_PORT = 15_082;
export const REDIRECT_PORT = 15_083;
export const ADMIN_PORT_NAME = 'token-admin';

/** In memory: the sidecar writes it, the app's containers read it. */
export const TOKENS_VOLUME = 'token-sidecar-tokens';
export const TOKENS_DIRECTORY = '/var/run/token-sidecar/tokens';

export const SIDECAR_USER = 65_532;

/** Redirection recognizes the sidecar by its user, and many app images have the usual one. Below 65536, for user namespaces. */
export const REDIRECT_USER = 15_083;

/** The kubelet mounts it even if the rest is read-only. */
export const TERMINATION_LOG = '/dev/termination-log';

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
