/**
 * Where a server listens, and what a host is: a name, an address, this machine; what it is called in DNS and in TLS.
 */

import { isIP } from 'node:net';

export interface ListenAddress {
  readonly host: string;
  /** 0 lets the system pick one. */
  readonly port: number;
}

/** For a listener: every address of the machine, IPv6 and IPv4, or only IPv4 on a machine without IPv6. */
export const EVERY_ADDRESS = '::';

/** `host:port` as a client would write it. */
export function formatAddress({ host, port }: ListenAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Where a client on this machine reaches a listener: an unspecified address stands for all, loopback included. */
export function reachableAddress({ host, port }: ListenAddress): ListenAddress {
  const loopback = new Map([
    ['0.0.0.0', '127.0.0.1'],
    // It takes IPv4 too, which every machine has.
    [EVERY_ADDRESS, '127.0.0.1'],
  ]);
  return { host: loopback.get(host) ?? host, port };
}

/** A host as dialled: an authority has an IPv6 address in brackets. */
export function withoutBrackets(host: string): string {
  return host.replace(/^\[|\]$/g, '');
}

/** RFC 1035 §2.3.4, in text form. */
export const MAX_NAME_CHARACTERS = 253;

const DNS_NAME = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

/**
 * Whether a host is a DNS name that can be resolved and certified: labels of letters, digits and hyphens (RFC 1123
 * §2.1), and of underscores, which some machines have. A name from a peer may hold any octet.
 * @param host lower-case.
 */
export function isDnsName(host: string): boolean {
  return host.length <= MAX_NAME_CHARACTERS && DNS_NAME.test(host);
}

/** Whether an authority's host is a name, or a pattern of names, rather than an address. */
export function isName(host: string): boolean {
  return isIP(withoutBrackets(host)) === 0;
}

/** Whether a host can only be this machine: nobody else sees what travels to it. */
export function isLoopbackHost(host: string): boolean {
  const name = withoutBrackets(host);
  return (
    name === 'localhost' || name.endsWith('.localhost') || name === '::1' || /^127(\.\d{1,3}){3}$/.test(name)
  );
}

/**
 * The name by which a host is asked for in a TLS handshake, and which its certificate has to hold.
 * @returns empty for an address, which is no server name (RFC 6066 §3); the certificate is checked against the host all
 * the same.
 */
export function serverNameOf(host: string): string {
  return isIP(host) === 0 ? withoutRootDot(host) : '';
}

/** The dot at the end of an absolute name is for DNS alone (RFC 6066 §3): Go's servers refuse a handshake that has it. */
export function withoutRootDot(host: string): string {
  return host.endsWith('.') ? host.slice(0, -1) : host;
}
