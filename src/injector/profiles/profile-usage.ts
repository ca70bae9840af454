/** Counts how many pods were made with which profile, by `token-sidecar.dev/profiles-in-use` on each pod. */

import { PROFILES_IN_USE } from '../pod/annotations.ts';
import type { ProfileIdentity, ProfileKind } from './profile.ts';

export interface UsingPod {
  readonly metadata: {
    readonly uid?: string;
    readonly namespace?: string;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: string;
  };
}

export interface Usage {
  readonly pods: number;
  /** Pods made with an earlier generation. */
  readonly outdatedPods: number;
}

interface Use {
  readonly kind: ProfileKind;
  readonly name: string;
  /** Undefined if the pod was made from a file. */
  readonly generation: number | undefined;
}

/** Beyond this, pods are not counted. */
const MAX_PODS = 50_000;
/** The number of a pod's profiles that are counted; the injector accepts no more. */
const MAX_PROFILES_OF_POD = 16;

interface ProfileUsage {
  seen(pod: UsingPod): void;
  gone(pod: UsingPod): void;
  clear(): void;
  of(profiles: readonly ProfileIdentity[]): ReadonlyMap<ProfileIdentity, Usage>;
}

export function createProfileUsage(): ProfileUsage {
  const pods = new Map<string, { readonly namespace: string; readonly inUse: string }>();

  return {
    seen({ metadata: { uid = '', namespace = '', annotations = {}, deletionTimestamp } }) {
      const inUse = annotations[PROFILES_IN_USE];
      if (inUse === undefined || deletionTimestamp !== undefined) {
        pods.delete(uid);
        return;
      }
      if (pods.size >= MAX_PODS && !pods.has(uid)) return;
      // A copy: a slice would hold on to the pod's whole text.
      pods.set(uid, { namespace, inUse: Buffer.from(inUse.slice(0, 4096)).toString() });
    },
    gone: ({ metadata: { uid = '' } }) => void pods.delete(uid),
    clear: () => pods.clear(),
    of(profiles) {
      const alike = new Map<string, { readonly namespace: string; readonly inUse: string; count: number }>();
      for (const { namespace, inUse } of pods.values()) {
        const key = `${namespace} ${inUse}`;
        const found = alike.get(key);
        if (found === undefined) alike.set(key, { namespace, inUse, count: 1 });
        else found.count++;
      }
      const counts = new Map<string, Map<number | undefined, number>>();
      for (const { namespace, inUse, count } of alike.values()) {
        for (const { kind, name, generation } of usesIn(inUse)) {
          const key = keyOf({ kind, name, namespace });
          const found = counts.get(key) ?? new Map<number | undefined, number>();
          found.set(generation, (found.get(generation) ?? 0) + count);
          counts.set(key, found);
        }
      }
      return new Map(profiles.map((profile) => [profile, usageOf(profile, counts.get(keyOf(profile)))]));
    },
  };
}

/** `TokenProfile/payments@3, ClusterTokenProfile/crm@1`; anything else is not counted. */
function usesIn(text: string): readonly Use[] {
  return text
    .split(',')
    .slice(0, MAX_PROFILES_OF_POD)
    .flatMap((part) => {
      const [, kind, name, generation] =
        /^ *(TokenProfile|ClusterTokenProfile)\/([a-z0-9-]{1,63})(?:@(\d{1,15}))? *$/.exec(part) ?? [];
      if (kind === undefined || name === undefined) return [];
      return [
        {
          kind: kind as ProfileKind,
          name,
          generation: generation === undefined ? undefined : Number(generation),
        },
      ];
    });
}

function usageOf(
  { generation = 0 }: ProfileIdentity,
  counts: ReadonlyMap<number | undefined, number> = new Map(),
): Usage {
  let pods = 0;
  let outdatedPods = 0;
  for (const [made, count] of counts) {
    pods += count;
    if (made !== undefined && made < generation) outdatedPods += count;
  }
  return { pods, outdatedPods };
}

function keyOf({ kind, name, namespace = '' }: Pick<ProfileIdentity, 'kind' | 'name' | 'namespace'>): string {
  return kind === 'TokenProfile' ? `${kind} ${namespace}/${name}` : `${kind} ${name}`;
}
