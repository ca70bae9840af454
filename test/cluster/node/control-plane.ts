/** etcd, the API server, the controllers and the scheduler, on the first node. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ADDRESSES, inEveryFamily } from './addresses.ts';
import { inPki, kubeconfigOf } from './certificates.ts';
import { startDaemon } from './daemon.ts';
import { kubectl } from './kubectl.ts';
import { AUTHENTICATION, STATE } from './places.ts';
import { eventually } from './run.ts';
import { KUBERNETES_BIN, MINOR } from './versions.ts';

const program = (name: string): string => join(KUBERNETES_BIN, name);

/** Structured authentication came with 1.30. */
export const FOLLOWS_PROVIDERS = MINOR >= 30;

/** Lets the API server believe the tokens of these providers, and of no others (`jwt` of AuthenticationConfiguration). */
export function trustProviders(jwt: readonly object[]): void {
  const kind = 'AuthenticationConfiguration';
  writeFileSync(AUTHENTICATION, JSON.stringify({ apiVersion: 'apiserver.config.k8s.io/v1beta1', kind, jwt }));
}

export async function startControlPlane(): Promise<void> {
  trustProviders([]);
  startDaemon(
    ...(['etcd', 'etcd', '--data-dir', join(STATE, 'etcd'), '--unsafe-no-fsync'] as const),
    ...['--listen-client-urls=http://127.0.0.1:2379', '--advertise-client-urls=http://127.0.0.1:2379'],
    '--listen-peer-urls=http://127.0.0.1:2380',
  );
  startDaemon(
    'apiserver',
    program('kube-apiserver'),
    '--etcd-servers=http://127.0.0.1:2379',
    `--advertise-address=${ADDRESSES.node}`,
    `--bind-address=${ADDRESSES.every}`,
    '--secure-port=6443',
    `--service-cluster-ip-range=${inEveryFamily('services').join(',')}`,
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    '--anonymous-auth=false',
    '--allow-privileged=true',
    `--client-ca-file=${inPki('ca.crt')}`,
    `--tls-cert-file=${inPki('apiserver.crt')}`,
    `--tls-private-key-file=${inPki('apiserver.key')}`,
    `--service-account-key-file=${inPki('accounts.pub')}`,
    `--service-account-signing-key-file=${inPki('accounts.key')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--kubelet-client-certificate=${inPki('apiserver-to-kubelet.crt')}`,
    `--kubelet-client-key=${inPki('apiserver-to-kubelet.key')}`,
    `--kubelet-certificate-authority=${inPki('ca.crt')}`,
    '--kubelet-preferred-address-types=InternalIP',
    // API servers behind this one know by that certificate who asks.
    `--requestheader-client-ca-file=${inPki('ca.crt')}`,
    '--requestheader-allowed-names=front-proxy',
    '--requestheader-username-headers=X-Remote-User',
    '--requestheader-group-headers=X-Remote-Group',
    '--requestheader-extra-headers-prefix=X-Remote-Extra-',
    `--proxy-client-cert-file=${inPki('front-proxy.crt')}`,
    `--proxy-client-key-file=${inPki('front-proxy.key')}`,
    ...(FOLLOWS_PROVIDERS ? [`--authentication-config=${AUTHENTICATION}`] : []),
  );
  await eventually('the API server is ready', 120, () => kubectl('get', '--raw', '/readyz'));
  startDaemon(
    'controller-manager',
    program('kube-controller-manager'),
    `--kubeconfig=${kubeconfigOf('controller-manager')}`,
    '--use-service-account-credentials',
    `--service-account-private-key-file=${inPki('accounts.key')}`,
    `--root-ca-file=${inPki('ca.crt')}`,
    '--allocate-node-cidrs',
    `--cluster-cidr=${inEveryFamily('pods').join(',')}`,
    `--service-cluster-ip-range=${inEveryFamily('services').join(',')}`,
    '--leader-elect=false',
    '--bind-address=127.0.0.1',
  );
  startDaemon(
    ...(['scheduler', program('kube-scheduler'), `--kubeconfig=${kubeconfigOf('scheduler')}`] as const),
    ...['--leader-elect=false', '--bind-address=127.0.0.1'],
  );
}
