import type { Problem } from '../platform/problems.ts';
import { ACCESS_LOGS } from './access-logs.ts';
import type { AccessLogConfig } from './config.ts';
import type { FileConfig } from './file-schema.ts';
import type { ProxyValues } from './proxy-settings.ts';
import { readValue } from './settings.ts';
import { oneOf } from './values.ts';

/** Undefined if requests are not logged. */
export function resolveAccessLog(
  file: Pick<FileConfig, 'accessLog' | 'accessLogSample'>,
  given: ProxyValues,
  problems: Problem[],
): AccessLogConfig | undefined {
  const requests = readValue(given['access-log'], oneOf(ACCESS_LOGS), problems) ?? file.accessLog ?? 'off';
  if ((file.accessLogSample ?? 1) < 1 && requests !== 'all') {
    problems.push({
      key: 'accessLogSample',
      value: String(file.accessLogSample),
      expected: `accessLog: all beside it, of which it takes a part, and not ${requests}`,
    });
  }
  return requests === 'off' ? undefined : { requests, sample: file.accessLogSample ?? 1 };
}
