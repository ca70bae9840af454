/** What the API server lets an account do. */

import { create } from '../node/kubectl.ts';

/** One line each: `get apps/statefulsets`, and `patch GROUP/RESOURCE NAME` where it goes for one object. */
export type Permissions = readonly string[];

interface RulesReview {
  readonly status: {
    readonly incomplete: boolean;
    readonly resourceRules: readonly {
      readonly verbs: readonly string[];
      readonly apiGroups: readonly string[];
      readonly resources: readonly string[];
      readonly resourceNames?: readonly string[];
    }[];
    readonly nonResourceRules: readonly {
      readonly verbs: readonly string[];
      readonly nonResourceURLs: readonly string[];
    }[];
  };
}

/** What `account` (`NAMESPACE:NAME`) may do in a namespace, beyond what every service account may. */
export async function permissionsOf(account: string, namespace: string): Promise<Permissions> {
  const everybodys = new Set(await reviewed(`${namespace}:without-any-role`, namespace));
  const own = await reviewed(account, namespace);
  return own.filter((permission) => !everybodys.has(permission));
}

async function reviewed(account: string, namespace: string): Promise<Permissions> {
  const { status } = await create<RulesReview>(
    {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectRulesReview',
      spec: { namespace },
    },
    // Validation reads definitions that the account may not.
    ...['--validate=false', '--as', `system:serviceaccount:${account}`],
  );
  if (status.incomplete) throw new Error(`the API server does not list all that ${account} may do`);
  const permissions = new Set<string>();
  for (const { verbs, apiGroups, resources, resourceNames } of status.resourceRules) {
    for (const verb of verbs)
      for (const group of apiGroups)
        for (const resource of resources)
          for (const name of resourceNames ?? ['']) {
            permissions.add(`${verb} ${group === '' ? '' : `${group}/`}${resource} ${name}`.trim());
          }
  }
  for (const { verbs, nonResourceURLs } of status.nonResourceRules) {
    for (const verb of verbs) for (const url of nonResourceURLs) permissions.add(`${verb} ${url}`);
  }
  return [...permissions].sort();
}
