import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/platform/time/clock.ts';
import { AccessLog, recordingOf } from '../../../src/proxy/recording/request-recorder.ts';
import { captureLog } from '../../support/log-capture.ts';

const OK = { status: 200, error: undefined, grpcStatus: undefined };

/** Whether a log of failures alone, or of a part of all requests, has a line for this outcome. */
function wanted(outcome: { status?: number; error?: string; grpcStatus?: number }, sample?: number) {
  const config = { requests: sample === undefined ? 'errors' : 'all', sample: sample ?? 1 } as const;
  return new AccessLog(captureLog().log, config, () => 0.5).wants({ ...OK, ...outcome } as never);
}

describe('an access log of failures', () => {
  it.each<[string, Parameters<typeof wanted>[0], boolean]>([
    ['an answer', {}, false],
    ['a redirection', { status: 399 }, false],
    ['a refusal', { status: 400 }, true],
    ['an answer that broke off', { error: 'upstream_protocol_error' }, true],
    ['a gRPC call that went well', { grpcStatus: 0 }, false],
    ['a gRPC call that did not', { grpcStatus: 14 }, true],
  ])('has a line for %s: %j %s', (_, outcome, is) => {
    expect(wanted(outcome)).toBe(is);
  });
});

it('an access log of a share has a line for drawn requests and for each failure', () => {
  expect([wanted({}, 0.5), wanted({}, 0.51), wanted({ status: 500 }, 0)]).toEqual([false, true, true]);
});

it('an access log line names the caller if it is known', () => {
  const { log, lines } = captureLog();
  const accessLog = new AccessLog(log, { requests: 'all', sample: 1 }, () => 0);
  const recorder = recordingOf({ clock: systemClock, log, accessLog })({
    protocol: 'http1',
    method: 'GET',
    target: '/',
    targetForm: 'origin',
    host: 'api.test',
    fields: [],
    connectionOptions: [],
    contentLength: undefined,
  });
  recorder?.identified('shop/web');
  recorder?.ended({ status: 200, grpcStatus: undefined, durationMs: 1, upstreamProtocol: undefined });
  const line = lines.find((one) => one.includes('"msg":"request"'));
  expect(JSON.parse(line ?? '{}')).toMatchObject({ caller: 'shop/web', status: 200 });
});
