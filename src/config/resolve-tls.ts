import { X509Certificate } from 'node:crypto';
import { MAX_PEM_BYTES, readBoundedFileSync } from '../bounded-file.ts';
import { messageOf, systemCodeOf } from '../errors.ts';
import type { TlsConfig } from './config.ts';
import type { RouteEntry } from './file-schema.ts';
import type { Problem } from './problems.ts';

/** Unset keys left out; files read once now, so that a wrong path stops the start and not the first request. */
export function resolveTls(key: string, entry: RouteEntry['tls'], problems: Problem[]): TlsConfig {
  const tls: TlsConfig = {
    ...(entry?.caFile === undefined ? {} : { caFile: entry.caFile }),
    ...(entry?.certFile === undefined ? {} : { certFile: entry.certFile }),
    ...(entry?.keyFile === undefined ? {} : { keyFile: entry.keyFile }),
    ...(entry?.serverName === undefined ? {} : { serverName: entry.serverName }),
  };
  for (const name of ['caFile', 'certFile'] as const) {
    const path = tls[name];
    if (path !== undefined) checkPem(`${key}.${name}`, path, problems, (pem) => new X509Certificate(pem));
  }
  if (tls.keyFile !== undefined) checkPem(`${key}.keyFile`, tls.keyFile, problems, () => undefined);
  if ((tls.certFile === undefined) !== (tls.keyFile === undefined)) {
    problems.push({ key, expected: 'certFile and keyFile together' });
  }
  return tls;
}

function checkPem(key: string, path: string, problems: Problem[], parse: (pem: string) => unknown): void {
  let pem: string;
  try {
    pem = readBoundedFileSync(path, MAX_PEM_BYTES);
  } catch (error) {
    problems.push({
      key,
      value: path,
      expected: `a readable file (${systemCodeOf(error) ?? messageOf(error)})`,
    });
    return;
  }
  try {
    parse(pem);
  } catch {
    problems.push({ key, value: path, expected: 'a file of PEM certificates' });
  }
}
