import { isIP } from 'node:net';

export interface ListenAddress {
  readonly host: string;
  /** 0: the system picks one. */
  readonly port: number;
}

/** IPv4 alone if the machine has no IPv6. */
export const EVERY_ADDRESS = '::';

export function formatAddress({ host, port }: ListenAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** An unspecified address becomes loopback. */
export function reachableAddress({ host, port }: ListenAddress): ListenAddress {
  const loopback = new Map([
    ['0.0.0.0', '127.0.0.1'],
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
 * By RFC 1123 §2.1, with underscores. A peer's name may hold any octet.
 * @param host lower-case.
 */
export function isDnsName(host: string): boolean {
  return host.length <= MAX_NAME_CHARACTERS && DNS_NAME.test(host);
}

/** True of a pattern, too. */
export function isName(host: string): boolean {
  return isIP(withoutBrackets(host)) === 0;
}

export function isLoopbackHost(host: string): boolean {
  const name = withoutBrackets(host);
  return (
    name === 'localhost' || name.endsWith('.localhost') || name === '::1' || /^127(\.\d{1,3}){3}$/.test(name)
  );
}

/** @returns empty for an address (RFC 6066 §3); its certificate is checked all the same. */
export function serverNameOf(host: string): string {
  return isIP(host) === 0 ? withoutRootDot(host) : '';
}

/** Go's servers refuse a handshake with the final dot (RFC 6066 §3). */
export function withoutRootDot(host: string): string {
  return host.endsWith('.') ? host.slice(0, -1) : host;
}
