/** What the world and those that look at it have in common. */

import { USER } from '../../../src/injector/pod/pod.ts';

/**
 * `forward`: clients know a proxy by their environment. `hosts`: names lead to the sidecar by the hosts file. `redirect`: the
 * system sends connections to the sidecar.
 */
export type WorldMode = 'forward' | 'hosts' | 'redirect';

/** Gets the token. */
export const API = 'api.example.com';

/** Is at the same address, and on no list. */
export const OTHER = 'other.example.com';

export const API_ADDRESS = '10.99.0.1';

/** Of the API too: nobody serves there but what a test starts. */
export const OTHER_PORT = 8443;

/** Gets the token, and is found by IPv6 alone. */
export const API_BY_IPV6 = 'six.example.com';

/** Of the pod in the mode redirect, which has a network of its own: what is on loopback is never redirected. */
export const POD = 'pod';
export const OUTSIDE = { ipv4: '10.99.1.1', ipv6: 'fd99::1', onLink: 'fe80::99' } as const;
export const INSIDE = { ipv4: '10.99.1.2', ipv6: 'fd99::2' } as const;

/** The sidecar's user as the injector sets it in the mode redirect: its connections go where they were going. */
export const SIDECAR_USER = String(USER.redirect);
/** User and group of the sidecar's image, and of many images of apps. */
export const IMAGE_USER = String(USER.sidecar);

/** Makes the pod's network, and the way from there to here. */
export const MAKE_POD = `
ip netns add ${POD}
ip link add veth-pod type veth peer name eth0 netns ${POD}
ip address add ${OUTSIDE.ipv4}/24 dev veth-pod
ip address add ${OUTSIDE.ipv6}/64 dev veth-pod nodad
ip address add ${OUTSIDE.onLink}/64 dev veth-pod nodad
ip link set veth-pod up
ip -n ${POD} link set lo up
ip -n ${POD} address add ${INSIDE.ipv4}/24 dev eth0
ip -n ${POD} address add ${INSIDE.ipv6}/64 dev eth0 nodad
ip -n ${POD} link set eth0 up
ip -n ${POD} route add default via ${OUTSIDE.ipv4}
ip -n ${POD} route add default via ${OUTSIDE.ipv6}
mkdir -p /run/token-sidecar/trust
chown ${SIDECAR_USER} /run/token-sidecar/trust
`;

/** What runs a command in the pod. */
export const IN_POD: readonly string[] = ['ip', 'netns', 'exec', POD];

/**
 * Servers that show certificates of an authority as the sidecar's is, made for GOOD alone: one that it may make, and those that it
 * has no right to.
 */
export const GOOD = 'good.example.net';
export const FORGED = ['bank.example.org', `below.${GOOD}`, `not${GOOD}`] as const;
export const FORGER_ADDRESS = '10.99.0.2';

/** Where what that authority is trusted by lies, below the world's directory. */
export const FORGER_TRUST = 'forger';

/** What the API says to whatever it has no file for. */
export const BODY = 'hello from the API';

export const TOKEN = 'eyJpbnRlcmNlcHRlZA.of.the-world';

/** What arrived at the API. */
export interface Arrived {
  readonly path: string;
  readonly host: string;
  readonly version: string;
  /** `ours`, `none`, or what it was instead. */
  readonly token: string;
}
