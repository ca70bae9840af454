import type { ForwardProxyConfig, InterceptionConfig } from './config.ts';
import type { FileConfig } from './file-schema.ts';
import type { Problem } from './problems.ts';
import { isName } from './values.ts';

const DEFAULT_DIRECTORY = '/var/run/token-sidecar/trust';

/** Where certificates are left for apps, if any TLS is intercepted. */
export function resolveInterception(
  entry: FileConfig['interception'],
  forwardProxy: ForwardProxyConfig | undefined,
  problems: Problem[],
): InterceptionConfig | undefined {
  if (forwardProxy?.connect !== 'intercept') {
    if (entry !== undefined) {
      problems.push({ key: 'interception', expected: 'forwardProxy.connect: intercept beside it' });
    }
    return undefined;
  }
  if (interceptedNames(forwardProxy).length === 0) {
    problems.push({
      key: 'forwardProxy.connect',
      value: 'intercept',
      expected: 'a host with a name in forwardProxy.allow: for addresses there are no certificates',
    });
  }
  return { directory: entry?.directory ?? DEFAULT_DIRECTORY };
}

/** Names, or `*.suffix`, whose TLS may be intercepted. */
export function interceptedNames({ allow }: ForwardProxyConfig): readonly string[] {
  return [...new Set(allow.map(({ host }) => host))].filter(isName);
}
