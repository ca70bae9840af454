/** A network namespace for the node, joined to the machine by a pair of virtual interfaces. */

import { existsSync } from 'node:fs';
import { IN_NAMESPACE } from './daemon.ts';
import { HOST_INTERFACE, HOST_IP, NETWORK_NAMESPACE, NODE_INTERFACE, NODE_IP } from './places.ts';
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
  await ip('addr', 'add', `${HOST_IP}/24`, 'dev', HOST_INTERFACE);
  await ip('link', 'set', HOST_INTERFACE, 'up');
  await inNamespace('ip', 'addr', 'add', `${NODE_IP}/24`, 'dev', NODE_INTERFACE);
  await inNamespace('ip', 'link', 'set', NODE_INTERFACE, 'up');
  await inNamespace('ip', 'link', 'set', 'lo', 'up');
  await inNamespace('ip', 'route', 'add', 'default', 'via', HOST_IP);
  await inNamespace('sh', '-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward');
  // Only there where the module is loaded; a bridge then works without it, too.
  await inNamespace(
    ...['sh', '-c', 'f=/proc/sys/net/bridge/bridge-nf-call-iptables; [ ! -e $f ] || echo 1 > $f'],
  );
}

export async function removeNetwork(): Promise<void> {
  if (existsSync(`/run/netns/${NETWORK_NAMESPACE}`)) await ip('netns', 'del', NETWORK_NAMESPACE);
  if (existsSync(`/sys/class/net/${HOST_INTERFACE}`)) await ip('link', 'del', HOST_INTERFACE);
}
