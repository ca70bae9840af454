import { isIP } from 'node:net';

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
