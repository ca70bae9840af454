import { basename, dirname } from 'node:path';
import type { PeerCertificate } from 'node:tls';
import { messageOf } from '../errors.ts';
import { type Logger, withoutRepeatLimit } from '../log/logger.ts';
import type { DirectoryWatchOptions } from '../mounted/directory-watch.ts';
import { type MountedSecret, openLiveSecret } from '../mounted/mounted-secret.ts';
import { ConfigurationError, type Problem } from '../problems.ts';
import { parseAuthorities } from '../x509/pem.ts';
import {
  type CertificateSource,
  createServedCertificate,
  parseServingCertificate,
  type ServedCertificateOptions,
  type ServingCertificate,
} from './serving-certificate.ts';

export interface CertificateFiles {
  readonly certFile: string;
  /** In the same directory, so that both are of one version. */
  readonly keyFile: string;
  /** For messages. */
  readonly key: string;
}

interface FileCertificateOptions extends DirectoryWatchOptions, ServedCertificateOptions {}

/**
 * An unusable certificate leaves the last good one in place.
 * @throws {ConfigurationError} if it is unusable from the start.
 */
export async function watchCertificateFiles(
  { certFile, keyFile, key }: CertificateFiles,
  options: FileCertificateOptions,
): Promise<CertificateSource> {
  const [certName, keyName] = [basename(certFile), basename(keyFile)];
  const secret = await openLiveSecret(dirname(certFile), [certName, keyName], options);

  function read(reading: MountedSecret): ServingCertificate | Problem {
    const problem = (why: string): Problem => ({
      key,
      value: certFile,
      expected: `a usable certificate, but ${why}`,
    });
    if (reading.state !== 'loaded') return problem(reading.detail);
    const parsed = parseServingCertificate(
      reading.values[certName] as string,
      reading.values[keyName] as string,
    );
    return typeof parsed === 'string' ? problem(parsed) : parsed;
  }

  const first = read(secret.current());
  if ('expected' in first) {
    secret.close();
    throw new ConfigurationError([first]);
  }
  const served = createServedCertificate(options, first);
  secret.onChange((reading) => {
    const next = read(reading);
    if ('expected' in next) served.refuse(next.expected);
    else served.offer(next);
  });
  return {
    ...served,
    close: async () => {
      served.close();
      secret.close();
    },
  };
}

export interface ClientVerification {
  /** PEM. */
  authorities(): string;
  /** Returns a function that stops it. */
  onChange(listener: () => void): () => void;
  accepts(socket: { getPeerCertificate(): PeerCertificate }): boolean;
}

/** An empty list accepts any name. */
function hasAllowedName(certificate: PeerCertificate, names: readonly string[]): boolean {
  if (names.length === 0) return true;
  const subject: string | string[] | undefined = certificate.subject?.CN;
  const own = [subject].flat();
  return names.some((name) => own.includes(name));
}

interface ClientAuthoritiesOptions extends DirectoryWatchOptions {
  readonly log: Logger;
  readonly onReload?: (result: 'loaded' | 'refused') => void;
}

interface ClientFiles {
  readonly caFile: string;
  /** Any if empty. */
  readonly names: readonly string[];
  /** For messages. */
  readonly key: string;
}

/**
 * An unusable bundle leaves the last good one in place.
 * @throws {ConfigurationError} if it is unusable from the start.
 */
export async function watchClientAuthorities(
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
      withoutRepeatLimit(log).error({ problem: next }, 'client CA not reloaded, the last good one stays');
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
