/**
 * As much of a Kubernetes API server as Helm needs to render against a cluster: version, discovery, and a store of
 * objects by path. It answers 404 for what it does not hold, as the real one does.
 */

import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { stringify } from 'yaml';

interface ApiResource {
  readonly kind: string;
  readonly name: string;
  readonly namespaced: boolean;
}

function resources(groupVersion: string, list: readonly ApiResource[]): unknown {
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion,
    resources: list.map((resource) => ({
      ...resource,
      singularName: '',
      verbs: ['create', 'delete', 'get', 'list', 'patch', 'update'],
    })),
  };
}

const GROUPS: Readonly<Record<string, readonly ApiResource[]>> = {
  'apps/v1': [
    { kind: 'Deployment', name: 'deployments', namespaced: true },
    { kind: 'DaemonSet', name: 'daemonsets', namespaced: true },
  ],
  'policy/v1': [{ kind: 'PodDisruptionBudget', name: 'poddisruptionbudgets', namespaced: true }],
  'coordination.k8s.io/v1': [{ kind: 'Lease', name: 'leases', namespaced: true }],
  'rbac.authorization.k8s.io/v1': [
    { kind: 'ClusterRole', name: 'clusterroles', namespaced: false },
    { kind: 'ClusterRoleBinding', name: 'clusterrolebindings', namespaced: false },
    { kind: 'Role', name: 'roles', namespaced: true },
    { kind: 'RoleBinding', name: 'rolebindings', namespaced: true },
  ],
  'admissionregistration.k8s.io/v1': [
    { kind: 'MutatingWebhookConfiguration', name: 'mutatingwebhookconfigurations', namespaced: false },
    { kind: 'ValidatingAdmissionPolicy', name: 'validatingadmissionpolicies', namespaced: false },
    {
      kind: 'ValidatingAdmissionPolicyBinding',
      name: 'validatingadmissionpolicybindings',
      namespaced: false,
    },
  ],
  'monitoring.coreos.com/v1': [
    { kind: 'PrometheusRule', name: 'prometheusrules', namespaced: true },
    { kind: 'ServiceMonitor', name: 'servicemonitors', namespaced: true },
  ],
};

const CORE: readonly ApiResource[] = [
  { kind: 'ConfigMap', name: 'configmaps', namespaced: true },
  { kind: 'Pod', name: 'pods', namespaced: true },
  { kind: 'Secret', name: 'secrets', namespaced: true },
  { kind: 'Service', name: 'services', namespaced: true },
  { kind: 'ServiceAccount', name: 'serviceaccounts', namespaced: true },
];

function discovery(): ReadonlyMap<string, unknown> {
  const groups = Object.keys(GROUPS).map((groupVersion) => {
    const [name, version] = groupVersion.split('/');
    return { name, versions: [{ groupVersion, version }], preferredVersion: { groupVersion, version } };
  });
  return new Map<string, unknown>([
    ['/version', { major: '1', minor: '36', gitVersion: 'v1.36.0' }],
    ['/api', { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] }],
    ['/apis', { kind: 'APIGroupList', apiVersion: 'v1', groups }],
    ['/api/v1', resources('v1', CORE)],
    ...Object.entries(GROUPS).map(([groupVersion, list]): [string, unknown] => [
      `/apis/${groupVersion}`,
      resources(groupVersion, list),
    ]),
  ]);
}

export interface FakeApiServer {
  /** Path of a kubeconfig that leads here. */
  readonly kubeconfig: string;
  /** Objects by their path, such as `/api/v1/namespaces/default/secrets/name`. */
  readonly objects: Map<string, unknown>;
  /** Requests so far, as `GET /path`. */
  readonly requests: string[];
  close(): Promise<void>;
}

/** @param directory where the kubeconfig is written. */
export async function startFakeApiServer(directory: string): Promise<FakeApiServer> {
  const known = discovery();
  const objects = new Map<string, unknown>();
  const requests: string[] = [];

  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://server');
    requests.push(`${request.method} ${pathname}`);
    const found = request.method === 'GET' ? (known.get(pathname) ?? objects.get(pathname)) : undefined;
    const body = found ?? {
      kind: 'Status',
      apiVersion: 'v1',
      status: 'Failure',
      reason: 'NotFound',
      code: 404,
    };
    response.writeHead(found === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  const kubeconfig = `${directory}/kubeconfig`;
  await writeFile(
    kubeconfig,
    stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        { name: 'fake', cluster: { server: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } },
      ],
      contexts: [{ name: 'fake', context: { cluster: 'fake', user: 'fake' } }],
      users: [{ name: 'fake', user: {} }],
      'current-context': 'fake',
    }),
  );

  return {
    kubeconfig,
    objects,
    requests,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
