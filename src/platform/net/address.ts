/** Addresses and hosts: where a server listens, and what a host is called in DNS and TLS. */

import { isIP } from 'node:net';

export interface ListenAddress {
  readonly host: string;
  /** 0 lets the system pick one. */
  readonly port: number;
}

/** For a listener: all addresses, of IPv4 alone if the machine has no IPv6. */
export const EVERY_ADDRESS = '::';

/** Brackets an IPv6 host. */
export function formatAddress({ host, port }: ListenAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Where a client on this machine reaches a listener; an unspecified address becomes loopback. */
export function reachableAddress({ host, port }: ListenAddress): ListenAddress {
  const loopback = new Map([
    ['0.0.0.0', '127.0.0.1'],
    // It takes IPv4 too, which every machine has.
    [EVERY_ADDRESS, '127.0.0.1'],
  ]);
  return { host: loopback.get(host) ?? host, port };
}

export function withoutBrackets(host: string): string {
  return host.replace(/^\[|\]$/g, '');
}

/** RFC 1035 §2.3.4, in text form. */
export const MAX_NAME_CHARACTERS = 253;

const DNS_NAME = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

/**
 * Whether a host is a DNS name by RFC 1123 §2.1; underscores are allowed, too. A peer's name may hold any octet.
 * @param host lower-case.
 */
export function isDnsName(host: string): boolean {
  return host.length <= MAX_NAME_CHARACTERS && DNS_NAME.test(host);
}

/** Also true of a pattern of names; false of an address. */
export function isName(host: string): boolean {
  return isIP(withoutBrackets(host)) === 0;
}

/** Whether nobody else sees what is sent to the host. */
export function isLoopbackHost(host: string): boolean {
  const name = withoutBrackets(host);
  return (
    name === 'localhost' || name.endsWith('.localhost') || name === '::1' || /^127(\.\d{1,3}){3}$/.test(name)
  );
}

/**
 * The name for a TLS handshake and its certificate.
 * @returns empty for an address (RFC 6066 §3), against which the certificate is checked all the same.
 */
export function serverNameOf(host: string): string {
  return isIP(host) === 0 ? withoutRootDot(host) : '';
}

/** Go's servers refuse a handshake with the final dot of an absolute name (RFC 6066 §3). */
export function withoutRootDot(host: string): string {
  return host.endsWith('.') ? host.slice(0, -1) : host;
}
