/**
 * The part of a Pod (core/v1) that the injector looks at. The rest passes through untouched, because a patch names only
 * what changes.
 */

import type { OwnerReference } from '../../platform/kubernetes/api.ts';

export interface Pod {
  readonly metadata?: PodMetadata;
  readonly spec?: PodSpec;
}

export interface PodMetadata {
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

export interface PodSecurityContext {
  readonly fsGroup?: number | null;
  readonly runAsUser?: number | null;
  readonly fsGroupChangePolicy?: string | null;
  readonly sysctls?: readonly { readonly name: string; readonly value: string }[] | null;
}

/** A line of the pod's hosts file. */
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
  /** Absent if the value comes from elsewhere. */
  readonly value?: string;
  readonly valueFrom?: object | null;
}

/** A variable with its value written in place. */
export type LiteralVariable = Required<Pick<EnvironmentVariable, 'name' | 'value'>>;

interface ContainerPort {
  readonly name?: string;
  readonly containerPort: number;
}

interface Volume {
  readonly name: string;
  readonly persistentVolumeClaim?: object | null;
}

/** A pod's namespace, with its labels if they are known. */
export interface Namespace {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Lists of the API may be null as well as absent. */
export function itemsOf<T>(list: readonly T[] | null | undefined): readonly T[] {
  return list ?? [];
}

/** Every container of a pod with its place, as messages name it: `spec.containers[0]`. */
export function containersOf(
  spec: PodSpec,
): readonly { readonly path: string; readonly container: Container }[] {
  return (['containers', 'initContainers'] as const).flatMap((list) =>
    itemsOf(spec[list]).map((container, index) => ({ path: `spec.${list}[${index}]`, container })),
  );
}

/** The owner that made the pod and is told its outcome. */
export function controllerOf(pod: Pod): OwnerReference | undefined {
  return itemsOf(pod.metadata?.ownerReferences).find(({ controller }) => controller === true);
}
