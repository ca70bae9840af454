/** What a running sidecar cannot change. */

import { isDeepStrictEqual } from 'node:util';
import type { CaptureConfig, Config, CredentialConfig } from '../../config/config.ts';
import { interceptedNames } from '../../config/resolve-hosts.ts';
import { formatAddress, type ListenAddress } from '../../platform/net/address.ts';

/**
 * Sentences that begin with the file's key.
 * @param start at the process's start: its certificates cover those names.
 */
export function needsRestart(start: Config, running: Config, next: Config): string[] {
  return [
    ...moved('listen', running.listen, next.listen),
    ...moved('admin.listen', running.admin.listen, next.admin.listen),
    ...listed('admin.hosts', running.admin.hosts, next.admin.hosts),
    ...tokenEndpointMoved(running, next),
    ...outputsChanged(running.credentials, next.credentials),
    ...gatewayMoved(running, next),
    ...listed('redirect', redirectPorts(running), redirectPorts(next)),
    ...listed('capture.hosts', capturedAddresses(running.capture), capturedAddresses(next.capture)),
    ...interceptionChanged(start, next),
  ];
}

function moved(key: string, from: ListenAddress, to: ListenAddress): string[] {
  if (isDeepStrictEqual(from, to)) return [];
  return [`${key}: from ${formatAddress(from)} to ${formatAddress(to)}`];
}

function listed(key: string, from: readonly string[], to: readonly string[]): string[] {
  if (isDeepStrictEqual(from, to)) return [];
  return [`${key}: from ${from.join(', ') || 'none'} to ${to.join(', ') || 'none'}`];
}

function tokenEndpointMoved({ tokenEndpoint: from }: Config, { tokenEndpoint: to }: Config): string[] {
  if (from === undefined && to === undefined) return [];
  if (from === undefined || to === undefined) {
    return [`tokenEndpoint: a listener that ${from === undefined ? 'is not open yet' : 'is open'}`];
  }
  return moved('tokenEndpoint.listen', from.listen, to.listen);
}

function gatewayMoved({ gateway: from }: Config, { gateway: to }: Config): string[] {
  if (from === undefined && to === undefined) return [];
  if (from === undefined || to === undefined) {
    return [`gateway: a listener that ${from === undefined ? 'is not open' : 'is open'}`];
  }
  return [
    ...moved('gateway.listen', from.listen, to.listen),
    ...listed('gateway.tls.certFile', [from.tls.certFile], [to.tls.certFile]),
    ...listed('gateway.tls.keyFile', [from.tls.keyFile], [to.tls.keyFile]),
    ...listed('gateway.clientCaFile', listOf(from.clientCaFile), listOf(to.clientCaFile)),
    ...listed(
      'gateway.serviceAccountTokens.audience',
      listOf(from.serviceAccountTokens?.audience),
      listOf(to.serviceAccountTokens?.audience),
    ),
  ];
}

function listOf(value: string | undefined): string[] {
  return value === undefined ? [] : [value];
}

function outputsChanged(running: readonly CredentialConfig[], next: readonly CredentialConfig[]): string[] {
  const outputs = (credentials: readonly CredentialConfig[]) =>
    new Map(credentials.flatMap(({ name, output }) => (output === undefined ? [] : [[name, output]])));
  const [from, to] = [outputs(running), outputs(next)];
  return [...new Set([...from.keys(), ...to.keys()])]
    .filter((name) => !isDeepStrictEqual(from.get(name), to.get(name)))
    .map((name) => `output of credential ${name}: a file or an endpoint for its token`);
}

function redirectPorts({ redirect }: Config): string[] {
  return redirect === undefined ? [] : [`port ${redirect.port}`];
}

function capturedAddresses(capture: CaptureConfig | undefined): string[] {
  return (capture?.hosts ?? []).map(
    ({ host, address, ports, clearPorts }) =>
      `${host}=${address} (${[...ports, ...clearPorts.map((port) => `${port} in clear`)].join(', ')})`,
  );
}

/** Apps trust the authority of their start, for the names listed then. */
function interceptionChanged(start: Config, next: Config): string[] {
  if (next.interception === undefined) return [];
  const directory = start.interception?.directory;
  if (directory !== next.interception.directory) {
    return [`interception.directory: from ${directory ?? 'none'} to ${next.interception.directory}`];
  }
  const known = new Set(interceptedNames(start));
  const added = interceptedNames(next).filter((name) => !known.has(name));
  return added.length === 0
    ? []
    : [`hosts whose TLS is intercepted: ${added.join(', ')}, which apps do not trust the sidecar for yet`];
}
