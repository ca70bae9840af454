/** The addresses of the cluster's one network: of both families where the machine has both, else of the one that it has. */

import { existsSync } from 'node:fs';

export type Family = 'IPv4' | 'IPv6';

/** All are within ranges that nobody routes. */
export interface Addresses {
  readonly host: string;
  readonly node: string;
  /** Of the network that host and node share. */
  readonly prefixLength: number;
  readonly pods: string;
  readonly nodePods: string;
  readonly services: string;
  readonly apiService: string;
  readonly dnsService: string;
  /** For the one Service of the scenarios that is known by its address. */
  readonly fixedService: string;
  /** What a listener on every address binds, and what a default route leads to. */
  readonly every: string;
  readonly anywhere: string;
}

const BY_FAMILY: Readonly<Record<Family, Addresses>> = {
  IPv4: {
    host: '10.99.0.1',
    node: '10.99.0.2',
    prefixLength: 24,
    pods: '10.98.0.0/16',
    nodePods: '10.98.0.0/24',
    services: '10.97.0.0/16',
    apiService: '10.97.0.1',
    dnsService: '10.97.0.10',
    fixedService: '10.97.0.20',
    every: '0.0.0.0',
    anywhere: '0.0.0.0/0',
  },
  IPv6: {
    host: 'fd00:99::1',
    node: 'fd00:99::2',
    prefixLength: 64,
    pods: 'fd00:98::/56',
    nodePods: 'fd00:98::/64',
    services: 'fd00:97::/112',
    apiService: 'fd00:97::1',
    dnsService: 'fd00:97::a',
    fixedService: 'fd00:97::20',
    every: '::',
    anywhere: '::/0',
  },
};

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
  return FAMILIES.map((family) => String(BY_FAMILY[family][kind]));
}

/** As in a URL. */
export function bracketed(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}

export const API_SERVER = `https://${bracketed(ADDRESSES.node)}:6443`;
