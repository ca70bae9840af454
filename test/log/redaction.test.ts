import { expect, it } from 'vitest';
import { captureLog } from '../support/log-capture.ts';

const SECRET = 'S3CRET-value';

/** By the words of RFC 6749, RFC 7523, RFC 9110 and our own. */
const KEYS = [
  'access_token',
  'accessToken',
  'authorization',
  'Authorization',
  'client_assertion',
  'client_secret',
  'clientSecret',
  'cookie',
  'password',
  'secret',
  'token',
];

it.each(KEYS)('the value of %s is never printed, also inside of what is logged', (key) => {
  const { log, lines } = captureLog();
  log.info({ [key]: SECRET }, 'top');
  log.info({ grant: { [key]: SECRET } }, 'one deep');
  log.error({ request: { headers: { [key]: SECRET } } }, 'two deep');
  log.child({ credential: 'c' }).warn({ [key]: SECRET }, 'child');
  expect(lines).toHaveLength(4);
  for (const line of lines) {
    expect(line).not.toContain(SECRET);
    expect(line).toContain('[redacted]');
  }
});

it('an error is told by message, code and cause, not by what else it carries', () => {
  const { log, lines } = captureLog();
  const cause = Object.assign(new Error('refused'), {
    code: 'ECONNREFUSED',
    headers: { authorization: SECRET },
  });
  log.error({ err: Object.assign(new Error('failed', { cause }), { config: { auth: SECRET } }) }, 'm');
  expect(JSON.parse(lines[0] as string)).toMatchObject({
    err: { message: 'failed', cause: { message: 'refused', code: 'ECONNREFUSED' } },
  });
  expect(lines[0]).not.toContain(SECRET);
});
