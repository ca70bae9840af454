/** CoreDNS as a program of the first node, behind the Service that every cluster has for it. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ADDRESSES, FAMILIES } from './addresses.ts';
import { kubeconfigOf } from './certificates.ts';
import { startDaemon } from './daemon.ts';
import { apply } from './kubectl.ts';
import { CONFIGURATION } from './places.ts';
import { COREDNS_BIN } from './versions.ts';

export async function startDns(): Promise<void> {
  await apply(
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'system:coredns' },
      rules: [
        {
          apiGroups: [''],
          resources: ['endpoints', 'services', 'pods', 'namespaces'],
          verbs: ['list', 'watch'],
        },
        { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
      ],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'system:coredns' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:coredns' },
      subjects: [{ kind: 'User', name: 'coredns', apiGroup: 'rbac.authorization.k8s.io' }],
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'kube-dns', namespace: 'kube-system' },
      spec: {
        clusterIP: ADDRESSES.dnsService,
        ports: [
          { name: 'dns', port: 53, protocol: 'UDP' },
          { name: 'dns-tcp', port: 53, protocol: 'TCP' },
        ],
      },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        name: 'kube-dns',
        namespace: 'kube-system',
        labels: { 'kubernetes.io/service-name': 'kube-dns' },
      },
      addressType: FAMILIES[0],
      ports: [
        { name: 'dns', port: 53, protocol: 'UDP' },
        { name: 'dns-tcp', port: 53, protocol: 'TCP' },
      ],
      endpoints: [{ addresses: [ADDRESSES.node], conditions: { ready: true } }],
    },
  );
  const corefile = join(CONFIGURATION, 'Corefile');
  writeFileSync(
    corefile,
    `.:53 {
  bind ${ADDRESSES.node}
  errors
  kubernetes cluster.local in-addr.arpa ip6.arpa {
    kubeconfig ${kubeconfigOf('coredns')} c
    pods insecure
    fallthrough in-addr.arpa ip6.arpa
  }
  cache 5
}
`,
  );
  startDaemon('coredns', join(COREDNS_BIN, 'coredns'), '-conf', corefile);
}
