import { basename, dirname } from 'node:path';
import type { DirectoryWatchOptions } from '../mounted/directory-watch.ts';
import { openLiveSecret } from '../mounted/live-secret.ts';
import type { MountedSecret } from '../mounted/mounted-secret.ts';
import { ConfigurationError, type Problem } from '../problems.ts';
import { createServedCertificate, type ServedCertificateOptions } from './served-certificate.ts';
import {
  type CertificateSource,
  parseServingCertificate,
  type ServingCertificate,
} from './serving-certificate.ts';

export interface CertificateFiles {
  readonly certFile: string;
  /** In the same directory, so that one look at a mounted Secret gives both in the same version. */
  readonly keyFile: string;
  /** Names the certificate in messages: the flag or variable that gave it. */
  readonly key: string;
}

interface FileCertificateOptions extends DirectoryWatchOptions, ServedCertificateOptions {}

/**
 * Follows a mounted certificate, made by Helm, by cert-manager or by hand. An unusable one leaves the last good one in
 * place.
 * @throws {ConfigurationError} if it is unusable from the start.
 */
export async function followCertificateFiles(
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
