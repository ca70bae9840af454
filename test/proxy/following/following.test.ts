import { expect, it } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { createLogger, setLogLevel } from '../../../src/log/logger.ts';
import { AccessLog } from '../../../src/proxy/following/access-log.ts';
import { following } from '../../../src/proxy/following/followed-request.ts';
import type { IncomingRequest } from '../../../src/proxy/streams/message.ts';

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

it('requests are followed for the log while it is at level trace, whenever that is set', () => {
  const lines: string[] = [];
  const log = createLogger('info', { write: (line) => void lines.push(line) });
  const follow = following({ clock: systemClock, log });
  expect(follow(REQUEST)).toBeUndefined();

  setLogLevel(log, 'trace');
  expect(follow(REQUEST)).toBeDefined();
  expect(lines.join('')).toContain('request begun');

  setLogLevel(log, 'info');
  expect(follow(REQUEST)).toBeUndefined();
  expect(lines).toHaveLength(1);
});

it('of a request that gets no line nothing is put together, and one that may get a line is drawn once', () => {
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
    const follower = following({ clock: systemClock, log, accessLog })(request);
    follower?.ended({ status, grpcStatus: undefined, durationMs: 1, upstreamProtocol: undefined });
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
