import type { Problem } from '../platform/problems.ts';
import type { TlsConfig } from './config.ts';
import type { RouteEntry } from './file-schema.ts';

/** Leaves out unset keys. */
export function resolveTls(key: string, entry: RouteEntry['tls'], problems: Problem[]): TlsConfig {
  const tls: TlsConfig = {
    ...(entry?.caFile === undefined ? {} : { caFile: entry.caFile }),
    ...(entry?.certFile === undefined ? {} : { certFile: entry.certFile }),
    ...(entry?.keyFile === undefined ? {} : { keyFile: entry.keyFile }),
    ...(entry?.serverName === undefined ? {} : { serverName: entry.serverName }),
  };
  if ((tls.certFile === undefined) !== (tls.keyFile === undefined)) {
    problems.push({ key, expected: 'certFile and keyFile together', code: 'incomplete_tls' });
  }
  return tls;
}
