/** What both ends of the slow wire know. */

/** What IPv6 is in the pod: the system knows no way by it, or it is there and leads nowhere. */
export type Ipv6 = 'absent' | 'lost';

/** How hosts are named: as they are usually, or with the dot of DNS at their end. */
export type Naming = 'usual' | 'absolute';

export interface Way {
  readonly roundTripMs: number;
  readonly ipv6: Ipv6;
  readonly naming: Naming;
}

/** Names of everything at the far end, all with an address of each family. */
export const NAMES = ['idp', 'api', 'proxy', 'collector', 'cache', 'cluster'].map(
  (name) => `${name}.example.com`,
);

export const FAR = { ipv4: '10.77.0.1', ipv6: 'fd77::1' } as const;
export const NEAR = { ipv4: '10.77.0.2', ipv6: 'fd77::2', onLink: 'fe80::2' } as const;

/** All but the proxy's as `server/main.go` has them. */
export const PORTS = {
  idp: 8443,
  api: 9443,
  proxy: 3128,
  collector: 4318,
  cache: 6379,
  cluster: 6443,
} as const;

/** What came of it, in the order in which it was tried. */
export interface Outcome {
  /** Of a connection by the address alone, over TCP. */
  readonly roundTripMs: number;
  /** What the app's requests were answered with: status, and the Host that arrived. */
  readonly direct: string;
  readonly through: string;
  /** Exit status, and what it says of what is not in order. */
  readonly check: string;
  readonly cluster: string;
  readonly cache: string;
  readonly spans: string;
}
