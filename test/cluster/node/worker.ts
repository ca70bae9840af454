/** What makes a network namespace a node: containerd, the kubelet, kube-proxy, and the images that pods run. */

import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ADDRESSES, everyFamilyOn, inEveryFamily } from './addresses.ts';
import { inPki, kubeconfigOf, makeKubeletCertificate } from './certificates.ts';
import { ctr, removeContainers, unmountBelow } from './containers.ts';
import { makeControlGroup, ON_VERSION_1, removeControlGroup } from './control-groups.ts';
import { daemons, startDaemonOn, stopDaemon } from './daemon.ts';
import { PAUSE_IMAGE } from './images.ts';
import { FIRST_NODE, type Node, onNode } from './nodes.ts';
import { IMAGES } from './places.ts';
import { eventually } from './run.ts';
import { CNI_BIN, KUBERNETES_BIN, MINOR } from './versions.ts';

/** The kubelet's directory of pods' logs can be set. */
export const HAS_POD_LOGS_DIRECTORY = MINOR >= 30;

/** The names of all that `startWorker` starts, in the order in which they are ended. */
export function programsOf(node: Node): readonly string[] {
  return ['kubelet', 'proxy', 'containerd'].map((program) => onNode(node, program));
}

/** Wants the node's network, and the images' archives. */
export async function startWorker(node: Node): Promise<void> {
  mkdirSync(join(node.directory, 'cni'), { recursive: true });
  await makeKubeletCertificate(node);
  makeControlGroup(node.controlGroup);
  await startContainerd(node);
  for (const archive of readdirSync(IMAGES)) await ctr(node, 'images', 'import', join(IMAGES, archive));
  startKubelet(node);
  startKubeProxy(node);
}

/** Ends all that `startWorker` began, in this process or in one that died, and takes away what it left. */
export async function stopWorker(node: Node): Promise<void> {
  await stopDaemon(onNode(node, 'kubelet'));
  if (daemons().includes(onNode(node, 'containerd'))) await removeContainers(node);
  await stopDaemon(onNode(node, 'proxy'));
  await stopDaemon(onNode(node, 'containerd'));
  unmountBelow(`${node.directory}/`);
  await removeControlGroup(node.controlGroup);
  rmSync(node.directory, { recursive: true, force: true });
}

async function startContainerd(node: Node): Promise<void> {
  const { directory, containerdSocket } = node;
  writeFileSync(
    join(directory, 'cni/10-bridge.conflist'),
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
            dataDir: join(directory, 'addresses'),
            ranges: everyFamilyOn(node, 'pods').map((subnet) => [{ subnet }]),
            routes: inEveryFamily('anywhere').map((dst) => ({ dst })),
          },
        },
        { type: 'portmap', capabilities: { portMappings: true } },
      ],
    }),
  );
  const configuration = join(directory, 'containerd.toml');
  writeFileSync(
    configuration,
    `version = 2
root = "${directory}/containerd"
state = "${directory}/containerd-state"
oom_score = 0
[grpc]
  address = "${containerdSocket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${CNI_BIN}"
    conf_dir = "${directory}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
`,
  );
  startDaemonOn(node, onNode(node, 'containerd'), 'containerd', '--config', configuration);
  await eventually('containerd answers', 30, () => ctr(node, 'version'));
}

function startKubelet(node: Node): void {
  const { directory, containerdSocket } = node;
  const kubelet = onNode(node, 'kubelet');
  const resolver = join(directory, 'resolv.conf');
  writeFileSync(resolver, `nameserver ${ADDRESSES.node}\n`);
  const configuration = join(directory, 'kubelet.yaml');
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
      cgroupRoot: node.controlGroup,
      clusterDNS: [ADDRESSES.dnsService],
      clusterDomain: 'cluster.local',
      containerRuntimeEndpoint: `unix://${containerdSocket}`,
      tlsCertFile: inPki(`${kubelet}.crt`),
      tlsPrivateKeyFile: inPki(`${kubelet}.key`),
      failSwapOn: false,
      // Kubelets of 1.35 and later ask before they run on control groups of version 1.
      ...(ON_VERSION_1 && MINOR >= 31 ? { failCgroupV1: false } : {}),
      oomScoreAdj: 0,
      maxPods: 200,
      // The first one's is everybody's, which all programs that read logs of pods know.
      ...(node === FIRST_NODE ? {} : { podLogsDir: join(directory, 'pod-logs') }),
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
      volumePluginDir: join(directory, 'plugins'),
    }),
  );
  startDaemonOn(
    node,
    kubelet,
    join(KUBERNETES_BIN, 'kubelet'),
    `--config=${configuration}`,
    `--kubeconfig=${kubeconfigOf(kubelet)}`,
    `--root-dir=${join(directory, 'kubelet')}`,
    `--cert-dir=${join(directory, 'kubelet-pki')}`,
    `--hostname-override=${node.name}`,
    `--node-ip=${everyFamilyOn(node, 'node').join(',')}`,
  );
}

function startKubeProxy(node: Node): void {
  const configuration = join(node.directory, 'proxy.yaml');
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
  startDaemonOn(
    ...([
      node,
      onNode(node, 'proxy'),
      join(KUBERNETES_BIN, 'kube-proxy'),
      `--config=${configuration}`,
    ] as const),
    `--hostname-override=${node.name}`,
  );
}
