import type { ForwardProxyConfig, InterceptionConfig } from './config.ts';
import type { FileConfig } from './file-schema.ts';
import type { Problem } from './problems.ts';
import { PROXY_SETTINGS, type ProxyValues } from './proxy-settings.ts';
import { readValue } from './settings.ts';
import { isName, namedHosts } from './values.ts';

/** The file's forward proxy, or the one that `hosts` stands for: those are intercepted, and all else passes. */
export function withNamedHosts(file: FileConfig, given: ProxyValues, problems: Problem[]): FileConfig {
  const hosts = readValue(given.hosts, namedHosts, problems);
  if (given.hosts === undefined) return file;
  if (file.forwardProxy !== undefined) {
    problems.push({
      key: given.hosts.key,
      value: given.hosts.text,
      expected: 'nothing beside forwardProxy of the configuration file, which lists the hosts itself',
    });
    return file;
  }
  // Of hosts that were not understood nothing more is said.
  const allow = (hosts ?? [{ host: 'not-understood.invalid' }]).map((host) => ({ ...host }));
  return { ...file, forwardProxy: { allow, connect: 'intercept', otherHosts: 'pass' } };
}

/** Where certificates are left for apps, if any TLS is intercepted. */
export function resolveInterception(
  entry: FileConfig['interception'],
  forwardProxy: ForwardProxyConfig | undefined,
  given: ProxyValues,
  problems: Problem[],
): InterceptionConfig | undefined {
  const directory = given['trust-dir'];
  if (forwardProxy?.connect !== 'intercept') {
    const expected = 'forwardProxy.connect: intercept beside it';
    if (entry !== undefined) problems.push({ key: 'interception', expected });
    if (directory !== undefined) problems.push({ key: directory.key, value: directory.text, expected });
    return undefined;
  }
  if (interceptedNames(forwardProxy).length === 0) {
    problems.push({
      key: 'forwardProxy.connect',
      value: 'intercept',
      expected: 'a host with a name in forwardProxy.allow: for addresses there are no certificates',
    });
  }
  if (directory !== undefined && !directory.text.startsWith('/')) {
    problems.push({ key: directory.key, value: directory.text, expected: 'an absolute path' });
  }
  return { directory: directory?.text ?? entry?.directory ?? PROXY_SETTINGS['trust-dir'].default };
}

/** Names, or `*.suffix`, whose TLS may be intercepted. */
export function interceptedNames({ allow }: ForwardProxyConfig): readonly string[] {
  return [...new Set(allow.map(({ host }) => host))].filter(isName);
}
