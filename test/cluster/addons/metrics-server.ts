/** metrics-server as a program of the node, behind the Service by which the API server asks it for what pods use. */

import { ADDRESSES, FAMILIES } from '../node/addresses.ts';
import { inPki, issue, kubeconfigOf, makeClient } from '../node/certificates.ts';
import { startDaemon, stopDaemon } from '../node/daemon.ts';
import { apply, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { addonProgram } from './programs.ts';

const NAME = 'metrics-server';
const HOST = `${NAME}.kube-system.svc`;
const PORT = 10_251;
const API = 'v1beta1.metrics.k8s.io';

/** Until it has figures of pods. */
export async function startMetricsServer(): Promise<void> {
  await issue('metrics-api', `/CN=${HOST}`, `DNS:${HOST}`);
  await makeClient(NAME, `/O=system:masters/CN=${NAME}`);
  const own = kubeconfigOf(NAME);
  startDaemon(
    NAME,
    addonProgram('metrics-server', 'cmd/metrics-server'),
    `--kubeconfig=${own}`,
    `--authentication-kubeconfig=${own}`,
    `--authorization-kubeconfig=${own}`,
    `--secure-port=${PORT}`,
    `--bind-address=${ADDRESSES.node}`,
    `--tls-cert-file=${inPki('metrics-api.crt')}`,
    `--tls-private-key-file=${inPki('metrics-api.key')}`,
    `--kubelet-certificate-authority=${inPki('ca.crt')}`,
    '--kubelet-preferred-address-types=InternalIP',
    // The least that it takes, which has to be more than a kubelet may take.
    '--metric-resolution=10s',
    '--kubelet-request-timeout=5s',
  );
  const ports = [{ port: 443, targetPort: PORT, protocol: 'TCP' }];
  await apply(
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: NAME, namespace: 'kube-system' },
      spec: { ports },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        name: NAME,
        namespace: 'kube-system',
        labels: { 'kubernetes.io/service-name': NAME },
      },
      addressType: FAMILIES[0],
      ports: [{ port: PORT, protocol: 'TCP' }],
      endpoints: [{ addresses: [ADDRESSES.node], conditions: { ready: true } }],
    },
    {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: API },
      spec: {
        group: 'metrics.k8s.io',
        version: 'v1beta1',
        groupPriorityMinimum: 100,
        versionPriority: 100,
        service: { name: NAME, namespace: 'kube-system' },
        insecureSkipTLSVerify: true,
      },
    },
  );
  await eventually('metrics of pods are served', 120, async () => {
    const { items } = JSON.parse(await kubectl('get', '--raw', '/apis/metrics.k8s.io/v1beta1/pods')) as {
      items: readonly object[];
    };
    return items.length > 0;
  });
}

export async function stopMetricsServer(): Promise<void> {
  await kubectl('delete', 'apiservice', API, '--ignore-not-found');
  await kubectl('-n', 'kube-system', 'delete', 'service', NAME, '--ignore-not-found');
  await stopDaemon(NAME);
}
