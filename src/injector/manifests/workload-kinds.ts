/** Where each kind of object holds its pod. */

export interface Workload {
  /** In the form `Deployment shop`. */
  readonly name: string;
  readonly namespace: string | undefined;
  /** Path of the pod, or of the template shaped like one. */
  readonly podPath: readonly (string | number)[];
  /** The workload's own annotations: ours have no effect there. */
  readonly ownAnnotations: Readonly<Record<string, string>>;
}

const TEMPLATE = ['spec', 'template'];

const POD_PATHS: Readonly<Record<string, readonly string[]>> = {
  'v1/Pod': [],
  'v1/ReplicationController': TEMPLATE,
  'apps/v1/Deployment': TEMPLATE,
  'apps/v1/StatefulSet': TEMPLATE,
  'apps/v1/DaemonSet': TEMPLATE,
  'apps/v1/ReplicaSet': TEMPLATE,
  'batch/v1/Job': TEMPLATE,
  'batch/v1/CronJob': ['spec', 'jobTemplate', ...TEMPLATE],
};

export const WORKLOAD_KINDS: readonly string[] = Object.keys(POD_PATHS);

/** The workloads of a manifest: one, those of a list, or none. */
export function workloadsIn(manifest: unknown, path: readonly (string | number)[] = []): readonly Workload[] {
  if (!isObject(manifest)) return [];
  const { kind, apiVersion, metadata, items } = manifest;
  if (typeof kind !== 'string' || typeof apiVersion !== 'string') return [];
  if (kind.endsWith('List') && Array.isArray(items)) {
    return items.flatMap((item: unknown, index) => {
      // The items of a typed list may omit their kind.
      const named = isObject(item) ? { apiVersion, kind: kind.slice(0, -'List'.length), ...item } : item;
      return workloadsIn(named, [...path, 'items', index]);
    });
  }
  const podPath = POD_PATHS[`${apiVersion}/${kind}`];
  if (podPath === undefined) return [];
  const { name, generateName, namespace, annotations } = isObject(metadata) ? metadata : {};
  return [
    {
      name: `${kind} ${String(name ?? generateName ?? '')}`.trim(),
      namespace: typeof namespace === 'string' ? namespace : undefined,
      podPath: [...path, ...podPath],
      ownAnnotations:
        podPath.length > 0 && isObject(annotations) ? (annotations as Record<string, string>) : {},
    },
  ];
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
