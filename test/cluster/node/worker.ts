/** What makes the machine a node: containerd, the kubelet, kube-proxy, and the images that pods run. */

import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ADDRESSES, inEveryFamily } from './addresses.ts';
import { inPki, kubeconfigOf } from './certificates.ts';
import { startDaemon } from './daemon.ts';
import { PAUSE_IMAGE } from './images.ts';
import { CONFIGURATION, CONTAINERD_SOCKET, NODE_NAME, STATE } from './places.ts';
import { eventually, run } from './run.ts';
import { CNI_BIN, KUBERNETES_BIN, MINOR } from './versions.ts';

export async function startWorker(imageArchives: readonly string[]): Promise<void> {
  await startContainerd();
  for (const archive of imageArchives) await ctr('images', 'import', archive);
  startKubelet();
  startKubeProxy();
}

/** containerd's own client, in the namespace that the kubelet uses. */
export function ctr(...args: readonly string[]): Promise<string> {
  return run('ctr', ['--address', CONTAINERD_SOCKET, '--namespace', 'k8s.io', ...args]);
}

async function startContainerd(): Promise<void> {
  writeFileSync(
    join(CONFIGURATION, 'cni/10-bridge.conflist'),
    JSON.stringify({
      cniVersion: '0.4.0',
      name: 'pods',
      plugins: [
        {
          type: 'bridge',
          bridge: 'cni0',
          isGateway: true,
          ipMasq: true,
          hairpinMode: true,
          ipam: {
            type: 'host-local',
            dataDir: join(STATE, 'addresses'),
            ranges: inEveryFamily('nodePods').map((subnet) => [{ subnet }]),
            routes: inEveryFamily('anywhere').map((dst) => ({ dst })),
          },
        },
        { type: 'portmap', capabilities: { portMappings: true } },
      ],
    }),
  );
  const configuration = join(CONFIGURATION, 'containerd.toml');
  writeFileSync(
    configuration,
    `version = 2
root = "${STATE}/containerd"
state = "${STATE}/containerd-state"
oom_score = 0
[grpc]
  address = "${CONTAINERD_SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${CNI_BIN}"
    conf_dir = "${CONFIGURATION}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
`,
  );
  startDaemon('containerd', 'containerd', '--config', configuration);
  await eventually('containerd answers', 30, () => ctr('version'));
}

function startKubelet(): void {
  const resolver = join(CONFIGURATION, 'resolv.conf');
  writeFileSync(resolver, `nameserver ${ADDRESSES.node}\n`);
  const configuration = join(CONFIGURATION, 'kubelet.yaml');
  const onVersion1 = !existsSync('/sys/fs/cgroup/cgroup.controllers');
  writeFileSync(
    configuration,
    JSON.stringify({
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      kind: 'KubeletConfiguration',
      authentication: {
        x509: { clientCAFile: inPki('ca.crt') },
        anonymous: { enabled: false },
        webhook: { enabled: true },
      },
      authorization: { mode: 'Webhook' },
      address: ADDRESSES.every,
      cgroupDriver: 'cgroupfs',
      clusterDNS: [ADDRESSES.dnsService],
      clusterDomain: 'cluster.local',
      containerRuntimeEndpoint: `unix://${CONTAINERD_SOCKET}`,
      tlsCertFile: inPki('kubelet.crt'),
      tlsPrivateKeyFile: inPki('kubelet.key'),
      failSwapOn: false,
      // Kubelets of 1.35 and later ask before they run on control groups of version 1.
      ...(onVersion1 && MINOR >= 31 ? { failCgroupV1: false } : {}),
      oomScoreAdj: 0,
      maxPods: 200,
      registerWithTaints: [],
      resolvConf: resolver,
      // The kubelet looks for changes of Secrets this often, instead of once a minute.
      syncFrequency: '5s',
      configMapAndSecretChangeDetectionStrategy: 'Watch',
      evictionHard: {
        'memory.available': '100Mi',
        'nodefs.available': '1%',
        'imagefs.available': '1%',
        'nodefs.inodesFree': '1%',
      },
      imageGCHighThresholdPercent: 100,
      volumePluginDir: join(STATE, 'plugins'),
    }),
  );
  startDaemon(
    'kubelet',
    join(KUBERNETES_BIN, 'kubelet'),
    `--config=${configuration}`,
    `--kubeconfig=${kubeconfigOf('kubelet')}`,
    `--root-dir=${join(STATE, 'kubelet')}`,
    `--cert-dir=${join(STATE, 'kubelet-pki')}`,
    `--hostname-override=${NODE_NAME}`,
    `--node-ip=${inEveryFamily('node').join(',')}`,
  );
}

function startKubeProxy(): void {
  const configuration = join(CONFIGURATION, 'proxy.yaml');
  writeFileSync(
    configuration,
    JSON.stringify({
      apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
      kind: 'KubeProxyConfiguration',
      clientConnection: { kubeconfig: kubeconfigOf('proxy') },
      mode: 'iptables',
      clusterCIDR: inEveryFamily('pods').join(','),
      conntrack: { maxPerCore: 0, min: 0 },
      oomScoreAdj: 0,
    }),
  );
  startDaemon(
    ...(['proxy', join(KUBERNETES_BIN, 'kube-proxy'), `--config=${configuration}`] as const),
    `--hostname-override=${NODE_NAME}`,
  );
}
