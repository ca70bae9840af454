/** Mode `hosts`: the pod's hosts file sends listed hosts to addresses of loopback, where the sidecar listens in their place. */

import type { Problem } from '../../config/problems.ts';
import { type NamedHost, namedHosts } from '../../config/values.ts';
import { itemsOf, type Pod, type PodSpec } from './pod.ts';
import { takenPorts } from './taken-ports.ts';

/** Where a listed host is found. */
export interface CapturedHost {
  readonly host: string;
  readonly address: string;
  /** Those that are named; without one, 443 and 80. */
  readonly ports: readonly number[];
}

/** Where the sidecar takes HTTP in clear. */
const CLEAR_PORT = 80;

const USUAL_PORTS = [443, CLEAR_PORT];

/** Ports below it are for the privileged alone, where the pod says nothing. */
const FIRST_UNPRIVILEGED = 1024;

/** A sysctl that the restricted Pod Security Standard takes for safe. */
const PORT_SYSCTL = 'net.ipv4.ip_unprivileged_port_start';

/** @param hosts as the annotation has them; undefined, and what is no list of hosts, is none. */
export function capturedHosts(hosts: string | undefined): readonly CapturedHost[] {
  const named = hosts === undefined ? [] : (namedHosts.parse(hosts) ?? []);
  return [...new Set(named.map(({ host }) => host))].map((host, index) => ({
    host,
    // The list is of 100 hosts at the most, and 127.0.0.1 is the app's own.
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

/** As `--capture-hosts` has them. */
export function captureSetting(hosts: string): string {
  return capturedHosts(hosts)
    .flatMap(({ host, address, ports }) => ports.map((port) => `${host}:${port}=${address}`))
    .join(', ');
}

/** Whether TLS is expected at any of the ports, so that apps have to trust what they are shown. */
export function endsTls(hosts: string): boolean {
  return capturedHosts(hosts).some(({ ports }) => ports.some((port) => port !== CLEAR_PORT));
}

/** What leads the names to the sidecar. */
export function hostAliases(hosts: string): readonly object[] {
  return capturedHosts(hosts).map(({ host, address }) => ({ ip: address, hostnames: [host] }));
}

/** What lets the sidecar, which is no privileged user, listen at the ports of these hosts; undefined where it may. */
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

/** What of the pod keeps the sidecar from taking the place of these hosts. */
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

/** As IPv6 has it, too (RFC 4291 §2.5.5.2): some apps in pods without IPv4 look for nothing else. */
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

/** A server at every address leaves none of that port to the sidecar, nor the sidecar to it. */
function takenByContainers(spec: PodSpec, captured: readonly CapturedHost[]): readonly Problem[] {
  return takenPorts(spec, (taken) => {
    const owner = captured.find((host) => host.ports.includes(taken));
    if (owner === undefined) return undefined;
    const others = owner.ports.filter((port) => port !== taken);
    const way = others.length > 0 ? `; the hosts may name theirs, as ${owner.host}:${others[0]}` : '';
    return `a port at which no host is captured${way}`;
  });
}
