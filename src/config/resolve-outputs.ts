/** Tokens that are handed out beside the proxy. */

import { formatAddress, isLoopbackHost, type ListenAddress } from '../platform/net/address.ts';
import type { Problem } from '../platform/problems.ts';
import type { OutputConfig } from './config.ts';
import type { CredentialEntry } from './credential-schema.ts';
import type { Keyed } from './entries.ts';
import type { FileConfig } from './file-schema.ts';

/** Readable by its owner and group. */
const DEFAULT_MODE = 0o640;

/** The names of the sidecar's temporary files, before they replace the target. */
const TEMPORARY = /\/\.[^/]+\.incoming$/;

const DEFAULT_TOKEN_ENDPOINT: ListenAddress = { host: '127.0.0.1', port: 15_082 };

/** @param key names the setting in messages. */
export function resolveOutput(
  key: string,
  entry: CredentialEntry['output'],
  problems: Problem[],
): OutputConfig | undefined {
  if (entry === undefined) return undefined;
  const { file, mode, group, endpoint = false } = entry;
  if (file === undefined) {
    for (const [name, value] of Object.entries({ mode, group })) {
      if (value !== undefined) {
        problems.push({
          key: `${key}.${name}`,
          value: String(value),
          expected: 'nothing without file',
          code: 'setting_without_use',
        });
      }
    }
    return endpoint ? { endpoint } : undefined;
  }
  const own = { path: file, mode: mode === undefined ? DEFAULT_MODE : Number.parseInt(mode, 8) };
  return { endpoint, file: group === undefined ? own : { ...own, group } };
}

/** Checks that need all credentials together. */
export function checkOutputs(
  credentials: readonly Keyed<{ readonly output?: OutputConfig }>[],
  problems: Problem[],
): void {
  const paths = credentials.map(({ entry }) => entry.output?.file?.path);
  credentials.forEach(({ key }, index) => {
    const path = paths[index];
    if (path === undefined) return;
    if (TEMPORARY.test(path)) {
      problems.push({
        key: `${key}.output.file`,
        value: path,
        expected: 'a name other than .NAME.incoming, by which a file NAME is replaced',
      });
      return;
    }
    if (paths.indexOf(path) === index) return;
    problems.push({
      key: `${key}.output.file`,
      value: path,
      expected: 'a file that no other credential has',
      code: 'conflicting_settings',
    });
  });
}

/** Where tokens are requested, if any credential hands its own out there. */
export function resolveTokenEndpoint(
  entry: FileConfig['tokenEndpoint'],
  credentials: readonly Keyed<{ readonly output?: OutputConfig }>[],
  problems: Problem[],
): { readonly listen: ListenAddress } | undefined {
  const isAsked = credentials.some(({ entry: { output } }) => output?.endpoint);
  if (entry !== undefined && !isAsked) {
    const expected = 'a credential with output.endpoint: true beside it';
    problems.push({ key: 'tokenEndpoint', expected, code: 'setting_without_use' });
  }
  const listen = entry?.listen ?? DEFAULT_TOKEN_ENDPOINT;
  if (!isLoopbackHost(listen.host)) {
    problems.push({
      key: 'tokenEndpoint.listen',
      value: formatAddress(listen),
      expected: 'an address of loopback: who asks there gets tokens',
    });
  }
  return isAsked ? { listen } : undefined;
}
