import { expect, it } from 'vitest';
import { createLogger, setLogLevel } from '../../../src/platform/log/logger.ts';
import { systemClock } from '../../../src/platform/time/clock.ts';
import type { TraceContext } from '../../../src/proxy/http/messages.ts';
import {
  AccessLog,
  type AttemptSpan,
  type RequestSpan,
  recordingOf,
  type Tracer,
} from '../../../src/proxy/recording/request-recorder.ts';
import type { IncomingRequest } from '../../../src/proxy/streams/contract.ts';
import { routeTo } from '../../wire/sidecar.ts';

const REQUEST: IncomingRequest = {
  protocol: 'http1',
  method: 'GET',
  target: '/',
  targetForm: 'origin',
  host: 'api.test',
  fields: [],
  connectionOptions: [],
  contentLength: undefined,
};

it('requests are recorded for the log while its level is trace, whenever that is set', () => {
  const lines: string[] = [];
  const log = createLogger('info', { write: (line) => void lines.push(line) });
  const follow = recordingOf({ clock: systemClock, log });
  expect(follow(REQUEST)).toBeUndefined();

  setLogLevel(log, 'trace');
  expect(follow(REQUEST)).toBeDefined();
  expect(lines.join('')).toContain('request begun');

  setLogLevel(log, 'info');
  expect(follow(REQUEST)).toBeUndefined();
  expect(lines).toHaveLength(1);
});

it('nothing is assembled for a request without a line, and a possible line is drawn once', () => {
  const lines: string[] = [];
  const log = createLogger('info', { write: (line) => void lines.push(line) });
  let draws = 0;
  const draw = (): number => {
    draws++;
    return 0.5;
  };
  let reads = 0;
  const request: IncomingRequest = {
    ...REQUEST,
    get target() {
      reads++;
      return '/orders';
    },
  };
  const end = (requests: 'all' | 'errors', sample: number, status: number): void => {
    const accessLog = new AccessLog(log, { requests, sample }, draw);
    const recorder = recordingOf({ clock: systemClock, log, accessLog })(request);
    recorder?.ended({ status, grpcStatus: undefined, durationMs: 1, upstreamProtocol: undefined });
  };
  end('errors', 1, 200);
  end('all', 0.4, 200);
  expect({ reads, draws, lines: lines.length }).toEqual({ reads: 0, draws: 1, lines: 0 });
  end('errors', 1, 503);
  end('all', 0, 503);
  end('all', 0.6, 200);
  expect(draws).toBe(2);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { path: '/orders', status: 503 },
    { path: '/orders', status: 503 },
    { path: '/orders', status: 200 },
  ]);
});

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const SPAN: TraceContext = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), sampled: true };
const OURS = `00-${SPAN.traceId}-${SPAN.spanId}-01`;

/** What leaves of a request with these fields, where it is in the access log, or in a trace as well. */
function sentOf(fields: string[], connectionOptions: string[], traced: boolean) {
  const log = createLogger('info', { write: () => {} });
  const accessLog = new AccessLog(log, { requests: 'all', sample: 1 }, () => 0.5);
  const attempt: AttemptSpan = { trace: SPAN, answered: () => {}, end: () => {} };
  const span: RequestSpan = {
    trace: SPAN,
    routed: () => {},
    awaits: () => {},
    send: () => attempt,
    failed: () => {},
    end: () => {},
  };
  const tracer: Tracer | undefined = traced ? { begin: () => span } : undefined;
  const request = { ...REQUEST, fields, connectionOptions };
  const recorder = recordingOf({ clock: systemClock, log, accessLog, tracer })(request);
  recorder?.routed(routeTo({ address: { host: 'up.test', port: 80 } }));
  const sent = recorder?.sending(request, '/');
  return { fields: sent?.fields, options: sent?.connectionOptions };
}

it('the upstream gets the app’s request id in the app’s field', () => {
  expect(sentOf(['X-Request-Id', 'abc', 'x', 'y'], ['x'], false)).toEqual({
    fields: ['X-Request-Id', 'abc', 'x', 'y'],
    options: ['x'],
  });
});

it('a request id listed in Connection is still forwarded, and a trace listed there is not continued', () => {
  const fields = ['X-Request-Id', 'abc', 'Traceparent', PARENT, 'Tracestate', 'a=b'];
  const options = ['x-request-id', 'traceparent', 'x-hop'];
  expect(sentOf(fields, options, false)).toEqual({
    fields: ['Traceparent', PARENT, 'Tracestate', 'a=b', 'x-request-id', 'abc'],
    options: ['traceparent', 'x-hop'],
  });
  expect(sentOf(fields, options, true)).toEqual({
    fields: ['Tracestate', 'a=b', 'traceparent', OURS, 'x-request-id', 'abc'],
    options: ['x-hop'],
  });
});

it('tracestate without a valid traceparent is not used for a new trace', () => {
  expect(sentOf(['x-request-id', 'abc', 'tracestate', 'a=b'], [], true)).toEqual({
    fields: ['x-request-id', 'abc', 'traceparent', OURS],
    options: [],
  });
});
