/** Follows the file of CAs that verify callers' certificates. */

import { basename, dirname } from 'node:path';
import { messageOf } from '../errors.ts';
import type { Logger } from '../log/logger.ts';
import type { DirectoryWatchOptions } from '../mounted/directory-watch.ts';
import { openLiveSecret } from '../mounted/live-secret.ts';
import type { MountedSecret } from '../mounted/mounted-secret.ts';
import { ConfigurationError } from '../problems.ts';
import { parseAuthorities } from '../x509/authorities.ts';
import { type ClientVerification, hasAllowedName } from './client-verification.ts';

interface ClientAuthoritiesOptions extends DirectoryWatchOptions {
  readonly log: Logger;
  /** Called for each bundle that was read, including the first. */
  readonly onReload?: (result: 'loaded' | 'refused') => void;
}

export interface ClientFiles {
  readonly caFile: string;
  /** Common names that may call; any if the list is empty. */
  readonly names: readonly string[];
  /** Names the file in messages. */
  readonly key: string;
}

/**
 * An unusable bundle leaves the last good one in place.
 * @throws {ConfigurationError} if it is unusable from the start.
 */
export async function followClientAuthorities(
  { caFile, names, key }: ClientFiles,
  { log, onReload, ...watching }: ClientAuthoritiesOptions,
): Promise<ClientVerification & { close(): void }> {
  const name = basename(caFile);
  const file = await openLiveSecret(dirname(caFile), [name], watching);
  const read = (reading: MountedSecret): ReturnType<typeof parseAuthorities> =>
    reading.state === 'loaded' ? parseAuthorities(reading.values[name] as string) : reading.detail;

  const first = read(file.current());
  if (typeof first === 'string') {
    file.close();
    throw new ConfigurationError([{ key, value: caFile, expected: `a usable CA bundle, but ${first}` }]);
  }
  onReload?.('loaded');
  let current = first.pem;
  const listeners = new Set<() => void>();
  file.onChange((reading) => {
    const next = read(reading);
    if (typeof next === 'string') {
      onReload?.('refused');
      log.error({ problem: next }, 'client CA not reloaded, the last good one stays');
      return;
    }
    current = next.pem;
    onReload?.('loaded');
    log.info('client CA loaded');
    for (const listener of listeners) {
      try {
        listener();
      } catch (error) {
        log.error({ err: messageOf(error) }, 'client CA not taken over');
      }
    }
  });
  return {
    authorities: () => current,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    accepts: (socket) => hasAllowedName(socket.getPeerCertificate(), names),
    close: () => file.close(),
  };
}
