import type { Problem } from '../../platform/problems.ts';
import { selects } from '../label-selector.ts';
import { isObject } from '../manifests/pod-templates.ts';
import { ANNOTATION } from '../pod/annotations.ts';
import type { ProfileRequest } from '../pod/cluster.ts';
import type { Namespace } from '../pod/pod.ts';
import {
  called,
  PROFILE_API_VERSION,
  PROFILE_KINDS,
  type ProfileIdentity,
  type ProfileSource,
  type ValidatedProfile,
  type ValidProfile,
} from './profile.ts';
import type { FilesOf } from './profile-entries.ts';
import { validateProfile } from './validate-profile.ts';

/** Why profiles cannot be used is added to `problems`. */
export function findProfiles(
  names: readonly string[],
  { namespace, serviceAccount }: Pick<ProfileRequest, 'namespace' | 'serviceAccount'>,
  source: ProfileSource,
  problems: Problem[],
): readonly ValidProfile[] {
  const unread = source.unread();
  if (unread !== undefined) {
    problems.push({
      key: ANNOTATION.profile,
      value: names.join(', '),
      expected: `profiles that can be read: ${unread}`,
    });
    return [];
  }
  return names.flatMap((name) => {
    const found = source.namespaced(namespace.name, name) ?? source.cluster(name);
    if (found === undefined) {
      const expected = `the name of a TokenProfile in the namespace ${namespace.name}, or of a ClusterTokenProfile`;
      problems.push({ key: ANNOTATION.profile, value: name, expected });
      return [];
    }
    // Checked first: a profile's mistakes do not concern those who may not use it.
    if (!isAdmitted(found, namespace, source)) {
      const expected = `a ClusterTokenProfile that admits the namespace ${namespace.name}, by its name or its labels`;
      problems.push({ key: ANNOTATION.profile, value: name, expected });
      return [];
    }
    if (found.state === 'valid' && found.serviceAccounts?.includes(serviceAccount) === false) {
      // The broker would refuse it, too, but unseen.
      const expected = `a ClusterTokenProfile that admits the service account ${serviceAccount}, which the pod runs as`;
      problems.push({ key: ANNOTATION.profile, value: name, expected });
      return [];
    }
    if (found.state === 'valid') return [found];
    const prefix = called(found.identity);
    problems.push(...found.problems.map((problem) => ({ ...problem, key: `${prefix}: ${problem.key}` })));
    return [];
  });
}

export function isAdmitted(
  profile: NonNullable<ReturnType<ProfileSource['cluster']>>,
  namespace: Namespace,
  source: ProfileSource,
): boolean {
  if (profile.identity.kind === 'TokenProfile') return true;
  const { names = [], selector } = profile.namespaces;
  if (names.includes(namespace.name)) return true;
  const labels = namespace.labels ?? source.labels(namespace.name);
  return selector !== undefined && labels !== undefined && selects(selector, labels);
}

export function manifestProfiles(
  manifests: readonly unknown[],
  namespace: string,
  filesOf: FilesOf,
): ProfileSource {
  const found = new Map<string, ValidatedProfile>();
  for (const manifest of manifests.flatMap(itemsIn)) {
    const identity = identityOf(manifest, namespace);
    if (identity === undefined) continue;
    const key = keyOf(identity);
    const judged = validateProfile(identity, (manifest as { spec?: unknown }).spec, filesOf);
    found.set(key, found.has(key) ? twice(judged) : judged);
  }
  return {
    unread: () => undefined,
    namespaced: (of, name) => found.get(keyOf({ kind: 'TokenProfile', name, namespace: of })),
    cluster: (name) => found.get(keyOf({ kind: 'ClusterTokenProfile', name })),
    // Those in the manifests come with the pod.
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

function twice({ identity, namespaces }: ValidatedProfile): ValidatedProfile {
  const problem = {
    key: 'metadata.name',
    value: identity.name,
    expected: 'one profile of this name, not two',
  };
  return { state: 'invalid', identity, namespaces, problems: [problem] };
}
