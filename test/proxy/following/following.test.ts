import { expect, it } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { createLogger, setLogLevel } from '../../../src/log/logger.ts';
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
