/** Limits of the data path, and which requests it logs. */

import type { Problem } from '../platform/problems.ts';
import type { AccessLogConfig, Http2Limits, ProxyLimits } from './config.ts';
import type { FileConfig } from './file-schema.ts';
import type { ProxyValues } from './proxy-settings.ts';
import { readValue } from './settings.ts';
import { ACCESS_LOGS, oneOf } from './values.ts';

const DEFAULT_HTTP2_LIMITS: Omit<Http2Limits, 'connectionWindowBytes'> = {
  maxStreams: 100,
  streamWindowBytes: 64 * 1024,
};

const DEFAULT_LIMITS: Omit<ProxyLimits, 'http2'> = {
  headerBytes: 64 * 1024,
  headerCount: 200,
  targetBytes: 16 * 1024,
  requestBodyBytes: 0,
  replayBytes: 64 * 1024,
  maxInFlight: 4096,
  headerTimeoutMs: 30_000,
  keepAliveTimeoutMs: 600_000,
};

/** The largest HTTP/2 window that may be configured. */
const MAX_WINDOW_BYTES = 1024 ** 3;

export function resolveLimits(entry: FileConfig['limits']): ProxyLimits {
  return {
    headerBytes: entry?.header ?? DEFAULT_LIMITS.headerBytes,
    headerCount: entry?.headerCount ?? DEFAULT_LIMITS.headerCount,
    targetBytes: entry?.target ?? DEFAULT_LIMITS.targetBytes,
    requestBodyBytes: entry?.requestBody ?? DEFAULT_LIMITS.requestBodyBytes,
    replayBytes: entry?.replay ?? DEFAULT_LIMITS.replayBytes,
    maxInFlight: entry?.inFlight ?? DEFAULT_LIMITS.maxInFlight,
    ...(entry?.connections === undefined ? {} : { maxConnections: entry.connections }),
    headerTimeoutMs: entry?.headerTimeout ?? DEFAULT_LIMITS.headerTimeoutMs,
    keepAliveTimeoutMs: entry?.keepAliveTimeout ?? DEFAULT_LIMITS.keepAliveTimeoutMs,
    http2: resolveHttp2Limits(entry?.http2),
  };
}

function resolveHttp2Limits(entry: NonNullable<FileConfig['limits']>['http2']): Http2Limits {
  const maxStreams = entry?.streams ?? DEFAULT_HTTP2_LIMITS.maxStreams;
  const streamWindowBytes = entry?.streamWindow ?? DEFAULT_HTTP2_LIMITS.streamWindowBytes;
  // As large as all streams together: then slow upstreams' streams leave room for the others.
  const enough = Math.min(maxStreams * streamWindowBytes, MAX_WINDOW_BYTES);
  return {
    maxStreams,
    streamWindowBytes,
    connectionWindowBytes: entry?.connectionWindow ?? enough,
  };
}

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
