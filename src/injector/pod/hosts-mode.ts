/** Mode `hosts`: the pod's hosts file leads listed hosts to the sidecar. */

import { formats, type NamedHost } from '../../config/values.ts';
import type { Problem } from '../../platform/problems.ts';
import type { InjectionDefaults } from '../injection-defaults.ts';
import { isAllowedHost } from './allow-lists.ts';
import { ANNOTATION, type SidecarMode } from './annotations.ts';
import { itemsOf, type Pod, type PodSpec, takenPorts } from './pod.ts';

interface CapturedHost {
  readonly host: string;
  readonly address: string;
  /** 443 and 80 if none is named. */
  readonly ports: readonly number[];
}

/** For clear-text HTTP. */
const CLEAR_PORT = 80;

const USUAL_PORTS = [443, CLEAR_PORT];

/** Lower ports need privileges, unless the pod says otherwise. */
const FIRST_UNPRIVILEGED = 1024;

/** The restricted Pod Security Standard considers it safe. */
const PORT_SYSCTL = 'net.ipv4.ip_unprivileged_port_start';

/** @param hosts undefined or invalid means none. */
function capturedHosts(hosts: string | undefined): readonly CapturedHost[] {
  const named = hosts === undefined ? [] : (formats.namedHosts.parse(hosts) ?? []);
  return [...new Set(named.map(({ host }) => host))].map((host, index) => ({
    host,
    // At most 100 hosts, and 127.0.0.1 is the app's own.
    address: `127.0.0.${index + 2}`,
    ports: portsOf(named, host),
  }));
}

function portsOf(named: readonly NamedHost[], host: string): readonly number[] {
  const ports = named
    .filter((other) => other.host === host)
    .flatMap(({ port }) => (port === undefined ? USUAL_PORTS : [port]));
  return [...new Set(ports)];
}

/** In the form of `--capture-hosts`. */
export function captureSetting(hosts: string): string {
  return capturedHosts(hosts)
    .flatMap(({ host, address, ports }) => ports.map((port) => `${host}:${port}=${address}`))
    .join(', ');
}

/** Apps then have to trust the sidecar. */
export function endsTls(hosts: string): boolean {
  return capturedHosts(hosts).some(({ ports }) => ports.some((port) => port !== CLEAR_PORT));
}

export function hostAliases(hosts: string): readonly object[] {
  return capturedHosts(hosts).map(({ host, address }) => ({ ip: address, hostnames: [host] }));
}

/** Undefined if the unprivileged sidecar may listen already. */
export function neededSysctl(
  context: PodSpec['securityContext'],
  hosts: string,
): { readonly name: string; readonly value: string } | undefined {
  const lowest = lowestPort(capturedHosts(hosts));
  if (lowest >= FIRST_UNPRIVILEGED || ownSysctl(context) !== undefined) return undefined;
  return { name: PORT_SYSCTL, value: String(lowest) };
}

function lowestPort(captured: readonly CapturedHost[]): number {
  return Math.min(...captured.flatMap(({ ports }) => ports));
}

function ownSysctl(context: PodSpec['securityContext']): string | undefined {
  return itemsOf(context?.sysctls).find(({ name }) => name === PORT_SYSCTL)?.value;
}

export function captureObstacles({ spec = {} }: Pod, hosts: string): readonly Problem[] {
  const captured = capturedHosts(hosts);
  return [
    ...ownAliases(spec, captured),
    ...tooHighSysctl(spec, captured),
    ...takenByContainers(spec, captured),
  ];
}

function ownAliases({ hostAliases }: PodSpec, captured: readonly CapturedHost[]): Problem[] {
  return itemsOf(hostAliases).flatMap(({ ip, hostnames }, index) =>
    itemsOf(hostnames)
      .filter((name) =>
        captured.some(({ host, address }) => host === name.toLowerCase() && !isSame(ip, address)),
      )
      .map((name) => ({
        key: `spec.hostAliases[${index}].hostnames`,
        value: name,
        expected: 'a name that is not captured: the sidecar has to be found by it',
      })),
  );
}

/** Also as IPv6 maps it (RFC 4291 §2.5.5.2). */
function isSame(ip: string | undefined, address: string): boolean {
  return ip === address || ip?.toLowerCase() === `::ffff:${address}`;
}

function tooHighSysctl({ securityContext }: PodSpec, captured: readonly CapturedHost[]): Problem[] {
  const own = ownSysctl(securityContext);
  const lowest = lowestPort(captured);
  if (own === undefined || Number(own) <= lowest) return [];
  const expected = `at most ${lowest}, the lowest port that is captured`;
  return [{ key: `spec.securityContext.sysctls[${PORT_SYSCTL}]`, value: own, expected }];
}

/** A server at every address takes the port from the sidecar. */
function takenByContainers(spec: PodSpec, captured: readonly CapturedHost[]): readonly Problem[] {
  return takenPorts(spec, (taken) => {
    const owner = captured.find((host) => host.ports.includes(taken));
    if (owner === undefined) return undefined;
    const others = owner.ports.filter((port) => port !== taken);
    const way = others.length > 0 ? `; the hosts may name theirs, as ${owner.host}:${others[0]}` : '';
    return `a port at which no host is captured${way}`;
  });
}

interface HostsConflicts {
  readonly annotations: Readonly<Record<string, string>>;
  readonly mode: SidecarMode;
  readonly native: boolean;
  readonly allowed: InjectionDefaults['allowed'];
}

export function hostsProblems({ annotations, mode, native, allowed = {} }: HostsConflicts): Problem[] {
  const text = annotations[ANNOTATION.hosts];
  if (text === undefined) return [];
  const hosts = formats.namedHosts.parse(text);
  const problems: Problem[] = [];
  if (hosts === undefined)
    problems.push({ key: ANNOTATION.hosts, value: text, expected: formats.namedHosts.expected });
  if (mode === 'reverse') {
    problems.push({
      key: ANNOTATION.mode,
      value: mode,
      expected: `forward, hosts or redirect, because ${ANNOTATION.hosts} is set`,
    });
  }
  const wildcard = mode === 'hosts' ? hosts?.find(({ host }) => host.startsWith('*.')) : undefined;
  if (wildcard !== undefined) {
    const expected = `exact names, because ${ANNOTATION.mode} is hosts: a hosts file has no wildcards, which forward and redirect take`;
    problems.push({ key: ANNOTATION.hosts, value: wildcard.host, expected });
  }
  if (annotations[ANNOTATION.configMap] !== undefined) {
    const expected = `nothing beside ${ANNOTATION.configMap}, whose forwardProxy lists the hosts itself`;
    problems.push({ key: ANNOTATION.hosts, value: text, expected });
  }
  if (!native) {
    const expected = `"true", because ${ANNOTATION.hosts} is set: apps read what to trust when they start, so the sidecar has to be there before`;
    problems.push({ key: ANNOTATION.nativeSidecar, value: 'false', expected });
  }
  for (const { host, port = 443 } of hosts ?? []) {
    const authority = `${host}:${port}`;
    if (isAllowedHost(`https://${authority}`, allowed.upstreamHosts)) continue;
    const expected = `hosts that the operator allows: ${allowed.upstreamHosts?.join(', ') || 'none'}`;
    problems.push({ key: ANNOTATION.hosts, value: authority, expected });
  }
  return problems;
}
