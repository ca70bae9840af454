import { isName } from '../platform/net/address.ts';
import type { Problem } from '../platform/problems.ts';
import type { Config, InterceptionConfig } from './config.ts';
import type { FileConfig } from './file-schema.ts';
import { PROXY_SETTINGS, type ProxyValues } from './proxy-settings.ts';
import { namesOverTls } from './resolve-capture.ts';
import { readValue } from './settings.ts';
import { namedHosts } from './values.ts';

/** The file's forward proxy, or the one that `hosts` defines: those hosts are intercepted, and all else passes. */
export function withNamedHosts(file: FileConfig, given: ProxyValues, problems: Problem[]): FileConfig {
  const hosts = readValue(given.hosts, namedHosts, problems);
  if (given.hosts === undefined) return file;
  if (file.forwardProxy !== undefined) {
    problems.push({
      key: given.hosts.key,
      value: given.hosts.text,
      expected: 'nothing beside forwardProxy of the configuration file, which lists the hosts itself',
      code: 'conflicting_settings',
    });
    return file;
  }
  // Nothing more is said of hosts that were not understood.
  const allow = (hosts ?? [{ host: 'not-understood.invalid' }]).map((host) => ({ ...host }));
  return { ...file, forwardProxy: { allow, connect: 'intercept', otherHosts: 'pass' } };
}

/** The parts that intercept TLS. */
type Interceptors = Partial<Pick<Config, 'forwardProxy' | 'capture' | 'redirect'>>;

/** Where certificates are left for apps, if any TLS is intercepted. */
export function resolveInterception(
  entry: FileConfig['interception'],
  interceptors: Interceptors,
  given: ProxyValues,
  problems: Problem[],
): InterceptionConfig | undefined {
  const directory = given['trust-dir'];
  const intercepts = interceptors.forwardProxy?.connect === 'intercept';
  if (!intercepts && interceptors.capture === undefined && interceptors.redirect === undefined) {
    // Interception may be switched off in a hurry by this one word, and back on by the other.
    if (interceptors.forwardProxy?.connect === 'tunnel') return undefined;
    const expected = 'forwardProxy.connect: intercept beside it, or captured or redirected hosts';
    if (entry !== undefined) problems.push({ key: 'interception', expected, code: 'setting_without_use' });
    if (directory !== undefined)
      problems.push({ key: directory.key, value: directory.text, expected, code: 'setting_without_use' });
    return undefined;
  }
  const names = interceptedNames(interceptors);
  if (intercepts && names.length === 0) {
    problems.push({
      key: 'forwardProxy.connect',
      value: 'intercept',
      expected: 'a host with a name in forwardProxy.allow: for addresses there are no certificates',
    });
  }
  if (directory !== undefined && !directory.text.startsWith('/')) {
    problems.push({ key: directory.key, value: directory.text, expected: 'an absolute path' });
  }
  // Hosts captured only in clear need no trust.
  if (names.length === 0) return undefined;
  return { directory: directory?.text ?? entry?.directory ?? PROXY_SETTINGS['trust-dir'].default };
}

/** Names, or `*.suffix`, whose TLS may be intercepted. */
export function interceptedNames({ forwardProxy, capture, redirect }: Interceptors): readonly string[] {
  const listed = forwardProxy?.connect === 'intercept' ? forwardProxy.allow.map(({ host }) => host) : [];
  const captured = capture === undefined ? [] : namesOverTls(capture);
  const redirected = redirect?.hosts.map(({ host }) => host) ?? [];
  return [...new Set([...listed, ...captured, ...redirected])].filter(isName);
}
