/**
 * Enforces NetworkPolicies on the node, by kube-network-policies as its own manifest installs it. The rules that ask it about
 * packets are made here: its own need the kernel's CONFIG_NFT_QUEUE, and let all of root's programs through, the API server too.
 */

import { existsSync } from 'node:fs';
import { addressesOf, FAMILIES, type Family } from '../node/addresses.ts';
import { PROGRAMS_IMAGE } from '../node/images.ts';
import { apply, kubectl } from '../node/kubectl.ts';
import { inNamespace } from '../node/network.ts';
import { eventually } from '../node/run.ts';
import { addonProgram } from './programs.ts';

const NAME = 'kube-network-policies';
const NAMESPACE = 'kube-system';
const QUEUE = '100';
const CHAIN = 'NETWORK-POLICIES';
const BRIDGE = 'cni0';
const PROGRAM = addonProgram('network-policies', 'cmd');

/** From now on no packet of a new connection passes that is from a pod or for one and that it forbids. */
export async function startEnforcing(): Promise<void> {
  if (!existsSync(PROGRAM)) throw new Error(`${PROGRAM} is missing: run scripts/install-cluster-addons.ts`);
  await apply(...RIGHTS, DAEMON);
  await kubectl('-n', NAMESPACE, 'rollout', 'status', `daemonset/${NAME}`, '--timeout=60s');
  await eventually('it listens to the queue', 30, async () => {
    const queues = await inNamespace('cat', '/proc/net/netfilter/nfnetlink_queue');
    return queues.split('\n').some((line) => line.trim().startsWith(`${QUEUE} `));
  });
  for (const family of FAMILIES) {
    for (const rule of await rules(family)) await mangle(family, ...rule);
  }
}

/** Before its program ends, since what is queued for nobody is lost. */
export async function stopEnforcing(): Promise<void> {
  for (const family of FAMILIES) {
    for (const [, chain = '', ...rest] of jumps(family)) {
      await mangle(family, '--delete', chain, ...rest).catch(() => undefined);
    }
    await mangle(family, '--flush', CHAIN).catch(() => undefined);
    await mangle(family, '--delete-chain', CHAIN).catch(() => undefined);
  }
  await kubectl('delete', 'daemonset', NAME, '-n', NAMESPACE, '--ignore-not-found', '--timeout=60s');
  await kubectl('delete', 'clusterrole,clusterrolebinding', NAME, '--ignore-not-found');
  await kubectl('delete', 'serviceaccount', NAME, '-n', NAMESPACE, '--ignore-not-found');
}

function mangle(family: Family, ...rule: readonly string[]): Promise<string> {
  const program = family === 'IPv4' ? 'iptables' : 'ip6tables';
  return inNamespace(program, '--wait', '--table', 'mangle', ...rule);
}

async function rules(family: Family): Promise<readonly (readonly string[])[]> {
  const { nodePods } = addressesOf(family);
  const queue = ['--jump', 'NFQUEUE', '--queue-num', QUEUE];
  return [
    ['--new-chain', CHAIN],
    ['--append', CHAIN, '--match', 'conntrack', '--ctstate', 'ESTABLISHED,RELATED', '--jump', 'RETURN'],
    // Without neighbour discovery there is no IPv6.
    ...(family === 'IPv6' ? [['--append', CHAIN, '--protocol', 'icmpv6', '--jump', 'RETURN']] : []),
    // The kubelet, which calls pods by their own addresses: a node reaches its pods, whatever policies say. The API server
    // comes to a Service, with the address that the node has outside.
    ['--append', CHAIN, '--source', await bridgeAddress(family), '--jump', 'RETURN'],
    ['--append', CHAIN, '--source', nodePods, ...queue],
    ['--append', CHAIN, '--destination', nodePods, ...queue],
    ...jumps(family),
  ];
}

/** Packets as Services have translated them, and before anything hides who sent them. */
function jumps(family: Family): readonly (readonly string[])[] {
  return [
    ['--append', 'POSTROUTING', '--jump', CHAIN],
    // For the API server and DNS, which are on this very node.
    ['--append', 'INPUT', '--source', addressesOf(family).nodePods, '--jump', CHAIN],
  ];
}

async function bridgeAddress(family: Family): Promise<string> {
  const version = family === 'IPv4' ? '-4' : '-6';
  const shown = await inNamespace(
    'ip',
    version,
    '-json',
    'address',
    'show',
    'dev',
    BRIDGE,
    'scope',
    'global',
  );
  const [bridge] = JSON.parse(shown) as { addr_info?: { local: string }[] }[];
  const address = bridge?.addr_info?.[0]?.local;
  if (address === undefined) throw new Error(`${BRIDGE} has no address of ${family}: no pod is there yet`);
  return address;
}

const metadata = { name: NAME, namespace: NAMESPACE };

/** As in its install.yaml. */
const RIGHTS = [
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: NAME },
    rules: [
      { apiGroups: [''], resources: ['pods', 'namespaces'], verbs: ['list', 'watch'] },
      { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: ['list', 'watch'] },
    ],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: NAME },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: NAME },
    subjects: [{ kind: 'ServiceAccount', name: NAME, namespace: NAMESPACE }],
  },
];

const labels = { app: NAME };

const DAEMON = {
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata,
  spec: {
    selector: { matchLabels: labels },
    template: {
      metadata: { labels },
      spec: {
        hostNetwork: true,
        serviceAccountName: NAME,
        containers: [
          {
            name: NAME,
            // For its file system alone: the program needs nothing of it.
            image: PROGRAMS_IMAGE,
            command: ['/netpol', '--hostname-override=$(NODE)', `--nfqueue-id=${QUEUE}`],
            env: [{ name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }],
            securityContext: { privileged: true, runAsUser: 0, runAsGroup: 0 },
            // It takes its own rules back at SIGINT alone.
            lifecycle: {
              preStop: {
                exec: {
                  command: ['node', '--eval', "process.kill(1, 'SIGINT'); setTimeout(() => {}, 1000)"],
                },
              },
            },
            volumeMounts: [{ name: 'program', mountPath: '/netpol', readOnly: true }],
          },
        ],
        terminationGracePeriodSeconds: 3,
        volumes: [{ name: 'program', hostPath: { path: PROGRAM, type: 'File' } }],
      },
    },
  },
};
