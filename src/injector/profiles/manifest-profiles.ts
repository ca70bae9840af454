/** Profiles found in manifests, where there is no cluster to ask. */

import { isObject } from '../manifests/workload-kinds.ts';
import type { FilesOf } from './credential-sources.ts';
import { judgeProfile } from './judge-profile.ts';
import { type JudgedProfile, PROFILE_API_VERSION, PROFILE_KINDS, type ProfileIdentity } from './profile.ts';
import type { ProfileSource } from './profile-source.ts';

/** @param namespace for profiles that name none. */
export function manifestProfiles(
  manifests: readonly unknown[],
  namespace: string,
  filesOf: FilesOf,
): ProfileSource {
  const found = new Map<string, JudgedProfile>();
  for (const manifest of manifests.flatMap(itemsIn)) {
    const identity = identityOf(manifest, namespace);
    if (identity === undefined) continue;
    const key = keyOf(identity);
    const judged = judgeProfile(identity, (manifest as { spec?: unknown }).spec, filesOf);
    found.set(key, found.has(key) ? twice(judged) : judged);
  }
  return {
    unread: () => undefined,
    namespaced: (of, name) => found.get(keyOf({ kind: 'TokenProfile', name, namespace: of })),
    cluster: (name) => found.get(keyOf({ kind: 'ClusterTokenProfile', name })),
    // Labels of a namespace in the same manifests come with the pod.
    labels: () => undefined,
  };
}

function itemsIn(manifest: unknown): readonly unknown[] {
  if (!isObject(manifest)) return [];
  const { kind, items } = manifest;
  return typeof kind === 'string' && kind.endsWith('List') && Array.isArray(items)
    ? items.flatMap(itemsIn)
    : [manifest];
}

function identityOf(manifest: unknown, fallback: string): ProfileIdentity | undefined {
  if (!isObject(manifest) || manifest['apiVersion'] !== PROFILE_API_VERSION) return undefined;
  const kind = PROFILE_KINDS.find((known) => known === manifest['kind']);
  const { name, namespace } = isObject(manifest['metadata']) ? manifest['metadata'] : {};
  if (kind === undefined || typeof name !== 'string') return undefined;
  if (kind === 'ClusterTokenProfile') return { kind, name };
  return { kind, name, namespace: typeof namespace === 'string' ? namespace : fallback };
}

function keyOf({ kind, name, namespace = '' }: ProfileIdentity): string {
  return `${kind} ${namespace}/${name}`;
}

function twice({ identity, namespaces }: JudgedProfile): JudgedProfile {
  const problem = {
    key: 'metadata.name',
    value: identity.name,
    expected: 'one profile of this name, not two',
  };
  return { state: 'invalid', identity, namespaces, problems: [problem] };
}
