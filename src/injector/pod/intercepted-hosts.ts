import { namedHosts } from '../../config/values.ts';
import type { Problem } from '../../platform/problems.ts';
import { isAllowedHost } from './allow-lists.ts';
import { CONFIG_MAP, HOSTS, MODE, NATIVE_SIDECAR } from './annotations.ts';
import type { InjectionDefaults, SidecarMode } from './injection-defaults.ts';

/** The rest of a pod whose hosts are to be intercepted. */
interface BesideHosts {
  readonly annotations: Readonly<Record<string, string>>;
  readonly mode: SidecarMode;
  readonly native: boolean;
  readonly allowed: InjectionDefaults['allowed'];
}

/** What is wrong with a pod's hosts, and what conflicts with them; nothing if it names none. */
export function hostsProblems({ annotations, mode, native, allowed = {} }: BesideHosts): Problem[] {
  const text = annotations[HOSTS];
  if (text === undefined) return [];
  const hosts = namedHosts.parse(text);
  const problems: Problem[] = [];
  if (hosts === undefined) problems.push({ key: HOSTS, value: text, expected: namedHosts.expected });
  if (mode === 'reverse') {
    problems.push({
      key: MODE,
      value: mode,
      expected: `forward, hosts or redirect, because ${HOSTS} is set`,
    });
  }
  const wildcard = mode === 'hosts' ? hosts?.find(({ host }) => host.startsWith('*.')) : undefined;
  if (wildcard !== undefined) {
    const expected = `exact names, because ${MODE} is hosts: a hosts file has no wildcards, which forward and redirect take`;
    problems.push({ key: HOSTS, value: wildcard.host, expected });
  }
  if (annotations[CONFIG_MAP] !== undefined) {
    const expected = `nothing beside ${CONFIG_MAP}, whose forwardProxy lists the hosts itself`;
    problems.push({ key: HOSTS, value: text, expected });
  }
  if (!native) {
    const expected = `"true", because ${HOSTS} is set: apps read what to trust when they start, so the sidecar has to be there before`;
    problems.push({ key: NATIVE_SIDECAR, value: 'false', expected });
  }
  for (const { host, port = 443 } of hosts ?? []) {
    const authority = `${host}:${port}`;
    if (isAllowedHost(`https://${authority}`, allowed.upstreamHosts)) continue;
    const expected = `hosts that the operator allows: ${allowed.upstreamHosts?.join(', ') || 'none'}`;
    problems.push({ key: HOSTS, value: authority, expected });
  }
  return problems;
}
