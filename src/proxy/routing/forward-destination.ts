/** Which destinations an app may reach through the forward proxy, and what goes there with its request. */

import type { AllowedDestination, ForwardProxyConfig, Upstream } from '../../config/config.ts';
import { DEFAULT_PORTS } from '../../config/values.ts';
import { isDnsName, withoutBrackets } from '../../platform/net/address.ts';

/** Where an app asks to go: the authority of an absolute-form or CONNECT target (RFC 9112 §3.2). */
export interface AskedDestination {
  readonly scheme: 'http' | 'https';
  /** Lower-case name or address, IPv6 in brackets. */
  readonly host: string;
  /** Absent: the scheme's own. */
  readonly port: number | undefined;
}

/** The first entry of the list that has this host and port, if any. */
export function allowedDestination(
  { allow }: ForwardProxyConfig,
  asked: AskedDestination,
): AllowedDestination | undefined {
  return allow.find(
    (destination) => matchesHost(destination.host, asked.host) && matchesPort(destination, asked),
  );
}

/**
 * Where a request to a listed (or, without `destination`, a passed) host is sent. The dialled host, the Host field and
 * the certificate's name all come from here, so that they cannot diverge. Port 80, explicit or not, belongs to plain
 * http: an upgraded request goes to 443.
 */
export function forwardUpstream(asked: AskedDestination, destination?: AllowedDestination): Upstream {
  const protocol = destination?.upgradeToTls === true ? 'https' : asked.scheme;
  const named = asked.port ?? destination?.port ?? DEFAULT_PORTS[asked.scheme];
  const port = named === DEFAULT_PORTS[asked.scheme] ? DEFAULT_PORTS[protocol] : named;
  const isNamedByApp = destination === undefined || destination.host.startsWith('*.');
  return {
    protocol,
    host: withoutBrackets(asked.host),
    port,
    authority: port === DEFAULT_PORTS[protocol] ? asked.host : `${asked.host}:${port}`,
    basePath: '',
    ...(isNamedByApp ? { party: destination?.host ?? 'other hosts' } : {}),
  };
}

/**
 * `*.example.com` stands for every name below example.com, at any depth, but not for example.com itself. The host must
 * be a valid name: SNI may hold any octet, and what matches is dialled, certified and written into a CONNECT.
 */
function matchesHost(pattern: string, host: string): boolean {
  if (!pattern.startsWith('*.')) return pattern === host;
  return host.endsWith(pattern.slice(1)) && isDnsName(host);
}

/** A destination without a port allows the well-known ones only: the list names services, not every port of a host. */
function matchesPort({ port }: AllowedDestination, asked: AskedDestination): boolean {
  const askedPort = asked.port ?? DEFAULT_PORTS[asked.scheme];
  if (port === undefined) return askedPort === DEFAULT_PORTS.http || askedPort === DEFAULT_PORTS.https;
  return port === askedPort || asked.port === undefined;
}
