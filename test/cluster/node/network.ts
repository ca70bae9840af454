/** A network namespace for each node, joined by a pair of virtual interfaces to the machine or to the node before it. */

import { existsSync } from 'node:fs';
import { addressesOf, addressesOn, FAMILIES, type Family } from './addresses.ts';
import { inNetworkOf } from './daemon.ts';
import { FIRST_NODE, type Node } from './nodes.ts';
import { run } from './run.ts';

const NODE_INTERFACE = 'tsc-node';

/** Runs a program in the first node's network namespace. */
export function inNamespace(...command: readonly string[]): Promise<string> {
  return inNamespaceOf(FIRST_NODE, ...command);
}

/** Runs a program in a node's network namespace. */
export function inNamespaceOf(node: Node, ...command: readonly string[]): Promise<string> {
  const [enter, ...entered] = inNetworkOf(node);
  return run(enter, [...entered, ...command]);
}

/** What the node's packets to anybody else come to: another node, or the machine. */
function atGateway({ behind }: Node, ...command: readonly [string, ...string[]]): Promise<string> {
  const [program, ...args] = command;
  return behind === undefined ? run(program, args) : inNamespaceOf(behind, ...command);
}

export async function makeNetwork(node: Node): Promise<void> {
  const { networkNamespace, gatewayInterface } = node;
  await run('ip', ['netns', 'add', networkNamespace]);
  await atGateway(
    node,
    ...(['ip', 'link', 'add', gatewayInterface, 'type', 'veth'] as const),
    ...['peer', 'name', NODE_INTERFACE, 'netns', networkNamespace],
  );
  await atGateway(node, 'ip', 'link', 'set', gatewayInterface, 'up');
  await inNamespaceOf(node, 'ip', 'link', 'set', NODE_INTERFACE, 'up');
  await inNamespaceOf(node, 'ip', 'link', 'set', 'lo', 'up');
  for (const family of FAMILIES) await addAddresses(node, family);
  await switchOn(node, 'net/ipv4/ip_forward');
  await switchOn(node, 'net/ipv6/conf/all/forwarding');
  // Only there where the module is loaded; a bridge then works without it, too.
  await switchOn(node, 'net/bridge/bridge-nf-call-iptables');
  await switchOn(node, 'net/bridge/bridge-nf-call-ip6tables');
}

async function addAddresses(node: Node, family: Family): Promise<void> {
  const { node: address, gateway, prefixLength, pods } = addressesOn(node, family);
  // Nobody else can have them: IPv6 need not look for a duplicate first.
  const flags = family === 'IPv6' ? ['nodad'] : [];
  const { gatewayInterface, behind } = node;
  await atGateway(
    node,
    ...(['ip', 'addr', 'add', `${gateway}/${prefixLength}`, 'dev', gatewayInterface, ...flags] as const),
  );
  await inNamespaceOf(
    node,
    ...['ip', 'addr', 'add', `${address}/${prefixLength}`, 'dev', NODE_INTERFACE, ...flags],
  );
  await inNamespaceOf(node, 'ip', 'route', 'add', 'default', 'via', gateway);
  if (behind !== undefined) await inNamespaceOf(behind, 'ip', 'route', 'add', pods, 'via', address);
  // Before the rules of the pods' bridge, which give what leaves its node the node's address.
  const everyPod = addressesOf(family).pods;
  await inNamespaceOf(
    node,
    ...[family === 'IPv6' ? 'ip6tables' : 'iptables', '--table', 'nat', '--append', 'POSTROUTING'],
    ...['--source', everyPod, '--destination', everyPod, '--jump', 'ACCEPT'],
  );
}

/** A setting of the node's kernel, where there is such a one. */
async function switchOn(node: Node, setting: string): Promise<void> {
  await inNamespaceOf(node, 'sh', '-c', `f=/proc/sys/${setting}; [ ! -e $f ] || echo 1 > $f`);
}

export async function removeNetwork(node: Node): Promise<void> {
  // First: it goes by itself some time after the namespace with its other end, perhaps just when it is to be deleted.
  await atGateway(node, 'ip', 'link', 'del', node.gatewayInterface).catch(() => undefined);
  const { networkNamespace } = node;
  if (existsSync(`/run/netns/${networkNamespace}`)) await run('ip', ['netns', 'del', networkNamespace]);
}
