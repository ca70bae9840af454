import { X509Certificate } from 'node:crypto';
import { MAX_PEM_BYTES, readBoundedFileSync } from '../bounded-file.ts';
import { messageOf, systemCodeOf } from '../errors.ts';
import { pauseEvery } from '../next-turn.ts';
import type { FileConfig, RouteEntry } from './file-schema.ts';
import type { Problem } from './problems.ts';

/** Entries whose files are read in one turn. */
const ENTRIES_AT_ONCE = 20;

/** The files of all TLS settings are read once now, so that a wrong path stops the start and not the first request. */
export async function checkTlsFiles(file: FileConfig, problems: Problem[]): Promise<void> {
  const pause = pauseEvery(ENTRIES_AT_ONCE);
  const lists = {
    credentials: file.credentials,
    routes: file.routes,
    'forwardProxy.allow': file.forwardProxy?.allow,
    'capture.hosts': file.capture?.hosts,
    'redirect.hosts': file.redirect?.hosts,
  };
  for (const [list, entries = []] of Object.entries(lists)) {
    for (const [index, { tls }] of entries.entries()) {
      if (tls === undefined) continue;
      checkFiles(`${list}[${index}].tls`, tls, problems);
      await pause();
    }
  }
  const { tls, clientCaFile } = file.gateway ?? {};
  if (tls !== undefined) checkFiles('gateway.tls', tls, problems);
  if (clientCaFile !== undefined) {
    checkPem('gateway.clientCaFile', clientCaFile, problems, (pem) => new X509Certificate(pem));
  }
}

function checkFiles(key: string, tls: NonNullable<RouteEntry['tls']>, problems: Problem[]): void {
  for (const name of ['caFile', 'certFile'] as const) {
    const path = tls[name];
    if (path !== undefined) checkPem(`${key}.${name}`, path, problems, (pem) => new X509Certificate(pem));
  }
  if (tls.keyFile !== undefined) checkPem(`${key}.keyFile`, tls.keyFile, problems, () => undefined);
}

/** @param parse throws where the text is not what it should be. */
export function checkPem(
  key: string,
  path: string,
  problems: Problem[],
  parse: (pem: string) => unknown,
): void {
  let pem: string;
  try {
    pem = readBoundedFileSync(path, MAX_PEM_BYTES);
  } catch (error) {
    problems.push({
      key,
      value: path,
      expected: `a readable file (${systemCodeOf(error) ?? messageOf(error)})`,
      code: 'file_unreadable',
    });
    return;
  }
  try {
    parse(pem);
  } catch {
    problems.push({ key, value: path, expected: 'a file of PEM certificates', code: 'invalid_pem' });
  }
}
