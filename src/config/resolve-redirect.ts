import { isName } from '../platform/net/address.ts';
import type { Problem } from '../platform/problems.ts';
import type { AllowedDestination, RedirectConfig } from './config.ts';
import type { Keyed } from './entries.ts';
import type { AllowedDestinationEntry, FileConfig } from './file-schema.ts';
import { isDoubtful } from './follow-ups.ts';
import { PROXY_SETTINGS, type ProxyValues } from './proxy-settings.ts';
import { checkReachable, resolveDestination } from './resolve-forward-proxy.ts';
import { DEFAULT_TIMEOUTS } from './resolve-policy.ts';
import { readValue } from './settings.ts';
import { namedHosts, portNumber } from './values.ts';

/** The hosts of redirected connections, with the keys that name them in messages. */
interface ResolvedRedirect {
  readonly config: RedirectConfig;
  readonly hosts: readonly Keyed<AllowedDestination>[];
}

/** The hosts of the file, or those that `redirect-hosts` names. */
export function resolveRedirect(
  entry: FileConfig['redirect'],
  given: ProxyValues,
  problems: Problem[],
): ResolvedRedirect | undefined {
  const flag = given['redirect-hosts'];
  const named = readValue(flag, namedHosts, problems);
  const port = readValue(given['redirect-port'], portNumber, problems);
  if (flag !== undefined && entry !== undefined) {
    const expected = 'nothing beside redirect of the configuration file, which lists the hosts itself';
    problems.push({ key: flag.key, value: flag.text, expected, code: 'conflicting_settings' });
  }
  if (flag === undefined && entry === undefined) {
    const unused = given['redirect-port'];
    if (unused !== undefined) {
      const expected = 'hosts beside it, in redirect or --redirect-hosts';
      problems.push({ key: unused.key, value: unused.text, expected, code: 'setting_without_use' });
    }
    return undefined;
  }
  const entries: readonly Keyed<AllowedDestinationEntry>[] =
    entry === undefined
      ? (named ?? []).map((host) => ({ key: flag?.key ?? '', entry: { ...host } }))
      : entry.hosts.map((host, index) => ({ key: `redirect.hosts[${index}]`, entry: host }));
  const hosts = entries.map((host) => ({ key: host.key, entry: resolveHost(host, problems) }));
  checkReachable(hosts, problems);
  return {
    config: {
      port: port ?? entry?.port ?? Number(PROXY_SETTINGS['redirect-port'].default),
      hosts: hosts.map((host) => host.entry),
      timeouts: DEFAULT_TIMEOUTS,
    },
    hosts,
  };
}

function resolveHost(
  { key, entry }: Keyed<AllowedDestinationEntry>,
  problems: Problem[],
): AllowedDestination {
  if (!isDoubtful(problems, key, 'host') && !isName(entry.host)) {
    const expected = 'a name: a connection is known by the name that its app asks for';
    problems.push({ key: `${key}.host`, value: entry.host, expected });
  }
  return resolveDestination(key, entry, 'intercept', problems);
}
