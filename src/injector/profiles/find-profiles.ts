/** The profiles that a pod names: of its own namespace, or of the cluster if they admit the namespace. */

import type { Problem } from '../../platform/problems.ts';
import { selects } from '../label-selector.ts';
import { PROFILE } from '../pod/annotations.ts';
import type { Namespace } from '../pod/pod.ts';
import type { ProfileRequest } from '../pod/profiles.ts';
import { called, type ValidProfile } from './profile.ts';
import type { ProfileSource } from './profile-source.ts';

/** The usable ones; the reasons against the others are added to `problems`. */
export function findProfiles(
  names: readonly string[],
  { namespace, serviceAccount }: Pick<ProfileRequest, 'namespace' | 'serviceAccount'>,
  source: ProfileSource,
  problems: Problem[],
): readonly ValidProfile[] {
  const unread = source.unread();
  if (unread !== undefined) {
    problems.push({
      key: PROFILE,
      value: names.join(', '),
      expected: `profiles that can be read: ${unread}`,
    });
    return [];
  }
  return names.flatMap((name) => {
    const found = source.namespaced(namespace.name, name) ?? source.cluster(name);
    if (found === undefined) {
      const expected = `the name of a TokenProfile in the namespace ${namespace.name}, or of a ClusterTokenProfile`;
      problems.push({ key: PROFILE, value: name, expected });
      return [];
    }
    // Checked before the profile's own mistakes, which do not concern those who may not use it.
    if (!isAdmitted(found, namespace, source)) {
      const expected = `a ClusterTokenProfile that admits the namespace ${namespace.name}, by its name or its labels`;
      problems.push({ key: PROFILE, value: name, expected });
      return [];
    }
    if (found.state === 'valid' && found.serviceAccounts?.includes(serviceAccount) === false) {
      // The broker would refuse it as well, but later and unseen.
      const expected = `a ClusterTokenProfile that admits the service account ${serviceAccount}, which the pod runs as`;
      problems.push({ key: PROFILE, value: name, expected });
      return [];
    }
    if (found.state === 'valid') return [found];
    const prefix = called(found.identity);
    problems.push(...found.problems.map((problem) => ({ ...problem, key: `${prefix}: ${problem.key}` })));
    return [];
  });
}

/** Whether a profile may be used in a namespace; the namespace's labels are looked up if not given. */
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
