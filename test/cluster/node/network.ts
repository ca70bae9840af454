/** A network namespace for the node, joined to the machine by a pair of virtual interfaces. */

import { existsSync } from 'node:fs';
import { addressesOf, FAMILIES } from './addresses.ts';
import { IN_NAMESPACE } from './daemon.ts';
import { HOST_INTERFACE, NETWORK_NAMESPACE, NODE_INTERFACE } from './places.ts';
import { run } from './run.ts';

const ip = (...args: string[]): Promise<string> => run('ip', args);

/** Runs a program in the node's network namespace. */
export function inNamespace(...command: readonly string[]): Promise<string> {
  const [enter, ...entered] = IN_NAMESPACE;
  return run(enter, [...entered, ...command]);
}

export async function makeNetwork(): Promise<void> {
  await ip('netns', 'add', NETWORK_NAMESPACE);
  await ip(
    ...[
      'link',
      'add',
      HOST_INTERFACE,
      'type',
      'veth',
      'peer',
      'name',
      NODE_INTERFACE,
      'netns',
      NETWORK_NAMESPACE,
    ],
  );
  await ip('link', 'set', HOST_INTERFACE, 'up');
  await inNamespace('ip', 'link', 'set', NODE_INTERFACE, 'up');
  await inNamespace('ip', 'link', 'set', 'lo', 'up');
  for (const family of FAMILIES) {
    const { host, node, prefixLength } = addressesOf(family);
    // Nobody else can have them: IPv6 need not look for a duplicate first.
    const flags = family === 'IPv6' ? ['nodad'] : [];
    await ip('addr', 'add', `${host}/${prefixLength}`, 'dev', HOST_INTERFACE, ...flags);
    await inNamespace('ip', 'addr', 'add', `${node}/${prefixLength}`, 'dev', NODE_INTERFACE, ...flags);
    await inNamespace('ip', 'route', 'add', 'default', 'via', host);
  }
  await switchOn('net/ipv4/ip_forward');
  await switchOn('net/ipv6/conf/all/forwarding');
  // Only there where the module is loaded; a bridge then works without it, too.
  await switchOn('net/bridge/bridge-nf-call-iptables');
  await switchOn('net/bridge/bridge-nf-call-ip6tables');
}

/** A setting of the node's kernel, where there is such a one. */
async function switchOn(setting: string): Promise<void> {
  await inNamespace('sh', '-c', `f=/proc/sys/${setting}; [ ! -e $f ] || echo 1 > $f`);
}

export async function removeNetwork(): Promise<void> {
  // First: it goes by itself some time after the namespace with its other end, perhaps just when it is to be deleted.
  if (existsSync(`/sys/class/net/${HOST_INTERFACE}`)) await ip('link', 'del', HOST_INTERFACE);
  if (existsSync(`/run/netns/${NETWORK_NAMESPACE}`)) await ip('netns', 'del', NETWORK_NAMESPACE);
}
