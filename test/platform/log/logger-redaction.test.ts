import { expect, it } from 'vitest';
import { captureLog } from '../../support/log-capture.ts';

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
  log
    .child({ [key]: SECRET, grant: { [key]: SECRET } })
    .child({ a: 1 })
    .info('bindings');
  log.info({ list: [{ [key]: SECRET }] }, 'in a list');
  expect(lines).toHaveLength(6);
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

it('so is one under another name, or one that carries a token itself', () => {
  const { log, lines } = captureLog();
  const error = Object.assign(new Error('failed'), { token: SECRET });
  log.error({ err: error }, 'm');
  log.error({ err: error, other: error, deep: { err: error } }, 'n');
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { err: { message: 'failed' } },
    { err: { message: 'failed' }, other: { message: 'failed' }, deep: { err: { message: 'failed' } } },
  ]);
  expect(lines.join()).not.toContain(SECRET);
});

it('what is logged stays as it was', () => {
  const { log } = captureLog();
  const facts = { grant: { token: SECRET } };
  log.info(facts, 'm');
  expect(facts).toEqual({ grant: { token: SECRET } });
});

it('an object with toJSON is printed by it, without its secrets', () => {
  class Grant {
    readonly token = SECRET;
    readonly key = SECRET;
    readonly #name = 'shop';
    toJSON() {
      return { name: this.#name, secret: SECRET };
    }
  }
  const { log, lines } = captureLog();
  const at = new Date(0);
  log.info({ grant: new Grant(), at, list: [at] }, 'm');
  expect(JSON.parse(lines[0] as string)).toMatchObject({
    grant: { name: 'shop', secret: '[redacted]' },
    at: '1970-01-01T00:00:00.000Z',
    list: ['1970-01-01T00:00:00.000Z'],
  });
  expect(lines[0]).not.toContain(SECRET);
});

it('an object whose toJSON throws does not lose the line', () => {
  const { log, lines } = captureLog();
  const failing = {
    key: SECRET,
    toJSON() {
      throw new Error(SECRET);
    },
  };
  log.info({ failing, route: 'shop' }, 'm');
  expect(JSON.parse(lines[0] as string)).toMatchObject({ failing: '[cannot be printed]', route: 'shop' });
  expect(lines[0]).not.toContain(SECRET);
});

it('an error that is its own cause, or has one without a text, is printed as far as it goes', () => {
  const { log, lines } = captureLog();
  const error = new Error('failed');
  error.cause = error;
  log.error({ err: error, other: error }, 'm');
  log.error({ err: new Error('failed', { cause: Object.create(null) }) }, 'n');
  log.error({ err: new Error('failed', { cause: [SECRET] }) }, 'o');
  expect((lines[0] as string).match(/"failed"/g)).toHaveLength(16);
  expect(lines.slice(1).map((line) => JSON.parse(line).err.cause)).toEqual([
    '[object Object]',
    '[object Array]',
  ]);
});
