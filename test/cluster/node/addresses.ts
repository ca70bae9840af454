/** The addresses of the cluster's networks: of both families where the machine has both, else of the one that it has. */

import { existsSync } from 'node:fs';
import { FIRST_NODE, type Node } from './nodes.ts';

export type Family = 'IPv4' | 'IPv6';

/** All are within ranges that nobody routes. */
export interface Addresses {
  /** Of the machine, as the first node sees it. */
  readonly host: string;
  /** Of the first node, and so of the control plane. */
  readonly node: string;
  readonly nodePods: string;
  /** Of all nodes. */
  readonly pods: string;
  readonly services: string;
  readonly apiService: string;
  readonly dnsService: string;
  /** For the one Service of the scenarios that is known by its address. */
  readonly fixedService: string;
  /** What a listener on every address binds, and what a default route leads to. */
  readonly every: string;
  readonly anywhere: string;
}

/** Addresses of one node. */
export interface NodeAddresses {
  readonly node: string;
  /** Where its packets go that are for anybody else. */
  readonly gateway: string;
  /** Of the network that the two share. */
  readonly prefixLength: number;
  readonly pods: string;
}

const BY_FAMILY: Readonly<Record<Family, Addresses>> = {
  IPv4: {
    ...onFirstNode('IPv4'),
    pods: '10.98.0.0/16',
    services: '10.97.0.0/16',
    apiService: '10.97.0.1',
    dnsService: '10.97.0.10',
    fixedService: '10.97.0.20',
    every: '0.0.0.0',
    anywhere: '0.0.0.0/0',
  },
  IPv6: {
    ...onFirstNode('IPv6'),
    pods: 'fd00:98::/56',
    services: 'fd00:97::/112',
    apiService: 'fd00:97::1',
    dnsService: 'fd00:97::a',
    fixedService: 'fd00:97::20',
    every: '::',
    anywhere: '::/0',
  },
};

function onFirstNode(family: Family): Pick<Addresses, 'host' | 'node' | 'nodePods'> {
  const { gateway, node, pods } = addressesOn(FIRST_NODE, family);
  return { host: gateway, node, nodePods: pods };
}

function familiesOf(network: string | undefined): readonly [Family, ...Family[]] {
  switch (network) {
    case undefined:
      return existsSync('/proc/net/if_inet6') ? ['IPv4', 'IPv6'] : ['IPv4'];
    case 'ipv4':
      return ['IPv4'];
    case 'ipv6':
      return ['IPv6'];
    case 'dual':
      return ['IPv4', 'IPv6'];
    default:
      throw new Error(`NETWORK=${network}: expected ipv4, ipv6 or dual`);
  }
}

/** The first is the one that Services have which ask for none. Another choice by the variable NETWORK. */
export const FAMILIES = familiesOf(process.env['NETWORK']);

export const ADDRESSES = BY_FAMILY[FAMILIES[0]];

export function addressesOf(family: Family): Addresses {
  return BY_FAMILY[family];
}

/** One kind of address in every family, in order. */
export function inEveryFamily(kind: keyof Addresses): readonly string[] {
  return FAMILIES.map((family) => BY_FAMILY[family][kind]);
}

export function addressesOn({ index }: Node, family: Family): NodeAddresses {
  // In its shortest form, as the API server writes it.
  const network = index === 0 ? '' : `:0:${index}`;
  return family === 'IPv4'
    ? {
        node: `10.99.${index}.2`,
        gateway: `10.99.${index}.1`,
        prefixLength: 24,
        pods: `10.98.${index}.0/24`,
      }
    : {
        node: `fd00:99${network}::2`,
        gateway: `fd00:99${network}::1`,
        prefixLength: 64,
        pods: `fd00:98${network}::/64`,
      };
}

/** One kind of address of a node in every family, in order. */
export function everyFamilyOn(node: Node, kind: 'node' | 'pods'): readonly string[] {
  return FAMILIES.map((family) => addressesOn(node, family)[kind]);
}

/** As in a URL. */
export function bracketed(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}

export const API_SERVER = `https://${bracketed(ADDRESSES.node)}:6443`;
