import { expect, it } from 'vitest';
import { UpstreamFailures } from '../../../src/proxy/upstream/failures.ts';

const failures = new UpstreamFailures('api.test:443');
const system = (code: string) => Object.assign(new Error('why'), { code });

it.each([
  ['connecting', 'ECONNREFUSED', 'upstream_unreachable', 'could not be reached: ECONNREFUSED'],
  ['connecting', 'ETIMEDOUT', 'upstream_timeout', 'could not be reached: ETIMEDOUT'],
  ['securing', 'ECONNRESET', 'upstream_tls_error', 'failed the TLS handshake: ECONNRESET'],
  ['busy', 'ECONNRESET', 'upstream_protocol_error', 'broke off before its answer was whole: ECONNRESET'],
  ['busy', 'ETIMEDOUT', 'upstream_protocol_error', 'broke off before its answer was whole: ETIMEDOUT'],
])('a connection that is %s and meets %s: %s', (phase, met, code, what) => {
  const cause = system(met);
  expect(failures.of(cause, phase)).toMatchObject({ code, message: `upstream api.test:443 ${what}`, cause });
});

it('an error without a system code has its message reported', () => {
  expect(failures.of(new Error('why'), 'connecting').message).toMatch(/could not be reached: why$/);
});

it.each([
  ['closed without an answer', failures.closed(), 'upstream_protocol_error'],
  ['cut', failures.cut(), 'upstream_protocol_error'],
  ['unasked', failures.unasked(), 'upstream_protocol_error'],
  ['too late', failures.tooLate('answer', 5), 'upstream_timeout'],
])('the message for %s names the upstream', (_, error, code) => {
  expect(error).toMatchObject({ code, message: expect.stringContaining('upstream api.test:443 ') });
});

it('a timeout message says what was awaited and for how long', () => {
  expect(failures.tooLate('connection', 1500).message).toContain('connection within 1500 ms');
});
