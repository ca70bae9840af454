import { basename, dirname } from 'node:path';
import { ConfigurationError, type Problem } from '../../config/problems.ts';
import type { DirectoryWatchOptions } from '../../credentials/directory-watch.ts';
import { openLiveSecret } from '../../credentials/live-secret.ts';
import type { MountedSecret } from '../../credentials/mounted-secret.ts';
import type { Logger } from '../../log.ts';
import {
  type CertificateSource,
  parseServingCertificate,
  type ServingCertificate,
} from './serving-certificate.ts';

export interface CertificateFiles {
  readonly certFile: string;
  /** In the same directory, so that one look at a mounted Secret gives both of one version. */
  readonly keyFile: string;
  /** Names the certificate in messages: the flag or variable that gave it. */
  readonly key: string;
}

export interface FileCertificateOptions extends DirectoryWatchOptions {
  readonly log: Logger;
}

/**
 * Follows a mounted certificate, made by Helm, by cert-manager or by hand. One that can't be used leaves the last
 * good one in place.
 * @throws {ConfigurationError} when it is not usable from the start.
 */
export async function followCertificateFiles(
  { certFile, keyFile, key }: CertificateFiles,
  options: FileCertificateOptions,
): Promise<CertificateSource> {
  const { log } = options;
  const [certName, keyName] = [basename(certFile), basename(keyFile)];
  const listeners = new Set<(certificate: ServingCertificate) => void>();
  const secret = await openLiveSecret(dirname(certFile), [certName, keyName], options);

  function read(reading: MountedSecret): ServingCertificate | Problem {
    const problem = (why: string): Problem => ({
      key,
      value: certFile,
      expected: `a usable certificate, but ${why}`,
    });
    if (reading.state !== 'loaded') return problem(reading.detail);
    const parsed = parseServingCertificate(reading.values[certName] ?? '', reading.values[keyName] ?? '');
    return typeof parsed === 'string' ? problem(parsed) : parsed;
  }

  const first = read(secret.current());
  if ('expected' in first) {
    secret.close();
    throw new ConfigurationError([first]);
  }
  let current = first;
  secret.onChange((reading) => {
    const next = read(reading);
    if ('expected' in next) {
      log.error({ problem: next.expected }, 'certificate not reloaded, the last good one stays');
      return;
    }
    current = next;
    log.info({ expiresAt: new Date(next.expiresAtMs).toISOString() }, 'certificate loaded');
    for (const listener of listeners) listener(next);
  });
  return {
    current: () => current,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close: async () => secret.close(),
  };
}
