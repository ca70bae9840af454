import { describe, expect, it } from 'vitest';
import { type EndpointAnswer, parseRetryAfter, readTokenResponse } from '../../src/token/token-response.ts';

const NOW = Date.parse('2030-01-01T00:00:00Z');

function read(answer: Partial<EndpointAnswer>) {
  return readTokenResponse(
    {
      status: 200,
      contentType: 'application/json',
      retryAfter: undefined,
      body: '',
      receivedAtMs: NOW,
      ...answer,
    },
    { defaultLifetimeMs: 300_000 },
  );
}

function grant(fields: Record<string, unknown>) {
  return read({
    body: JSON.stringify({ access_token: 'abc', token_type: 'Bearer', expires_in: 60, ...fields }),
  });
}

function jwt(claims: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'none' })}.${part(claims)}.c2ln`;
}

describe('the lifetime of a token', () => {
  it.each([
    ['a number of seconds', { expires_in: 300 }, 300_000],
    ['a numeric string', { expires_in: '300' }, 300_000],
    ['a fraction of seconds', { expires_in: 0.5 }, 500],
    ['the longest that makes sense', { expires_in: 315_360_000 }, 315_360_000_000],
    ['missing in an opaque token: the default', { expires_in: undefined }, 300_000],
    ['null in an opaque token: the default', { expires_in: null }, 300_000],
    [
      'missing in a JWT: exp - iat',
      { expires_in: undefined, access_token: jwt({ iat: NOW / 1000, exp: NOW / 1000 + 60 }) },
      60_000,
    ],
    [
      'missing in a JWT of a provider whose clock is ahead: exp - iat',
      { expires_in: undefined, access_token: jwt({ iat: NOW / 1000 + 3600, exp: NOW / 1000 + 3660 }) },
      60_000,
    ],
    [
      'missing in a JWT that was issued a while ago: what is left of it',
      { expires_in: undefined, access_token: jwt({ iat: NOW / 1000 - 50, exp: NOW / 1000 + 10 }) },
      10_000,
    ],
    [
      'missing in a JWT without iat: what is left of it',
      { expires_in: undefined, access_token: jwt({ exp: NOW / 1000 + 10 }) },
      10_000,
    ],
    [
      'missing in a JWT without exp: the default',
      { expires_in: undefined, access_token: jwt({ iat: NOW / 1000 }) },
      300_000,
    ],
    [
      'both: what the answer says counts',
      { expires_in: 30, access_token: jwt({ iat: 100, exp: 160 }) },
      30_000,
    ],
  ])('%s', (_name, fields, lifetimeMs) => {
    expect(grant(fields)).toMatchObject({ result: 'success', lifetimeMs });
  });

  it.each([0, -1, 1e12, '0', '-1', '1e3', '', ' 60', '60s', true, [], {}, [60]])(
    'refuses %j',
    (expires_in) => {
      expect(grant({ expires_in })).toMatchObject({ result: 'invalid_response' });
    },
  );
});

it('a JWT without expires_in that has ended is no token', () => {
  const access_token = jwt({ iat: NOW / 1000 - 600, exp: NOW / 1000 - 300 });
  expect(grant({ expires_in: undefined, access_token })).toEqual({
    result: 'invalid_response',
    detail: 'expires_in is missing and the exp of the token itself is past or makes no sense',
  });
});

describe('a grant', () => {
  it.each(['Bearer', 'bearer', 'BEARER'])('takes token_type %s', (token_type) => {
    expect(grant({ token_type })).toMatchObject({ result: 'success', accessToken: 'abc' });
  });

  it.each([
    ['token_type mac', { token_type: 'mac' }],
    ['no token_type', { token_type: undefined }],
    ['a token_type that is no string', { token_type: ['Bearer'] }],
    ['no access_token', { access_token: undefined }],
    ['an empty access_token', { access_token: '' }],
    ['a token that ends the header it is put in', { access_token: 'abc\r\nX-Evil: 1' }],
    ['a token with a space', { access_token: 'a b' }],
    ['a token that is a number', { access_token: 5 }],
    ['a token longer than any header', { access_token: 'a'.repeat(70_000) }],
  ])('with %s is invalid', (_name, fields) => {
    expect(grant(fields)).toMatchObject({ result: 'invalid_response' });
  });

  it.each([
    ['an empty body', ''],
    ['HTML', '<html>hello</html>'],
    ['truncated JSON', '{"access_token":"abc","token_ty'],
    ['a JSON array', '[]'],
    ['a JSON string', '"abc"'],
    ['JSON null', 'null'],
  ])('with %s is invalid', (_name, body) => {
    expect(read({ body })).toMatchObject({ result: 'invalid_response' });
  });
});

describe('a refusal', () => {
  const oauthError = (error: string) => JSON.stringify({ error, error_description: 'quotes s3cret' });

  it.each([
    [400, oauthError('invalid_request'), 'rejected'],
    [400, oauthError('invalid_scope'), 'rejected'],
    [400, oauthError('unauthorized_client'), 'rejected'],
    [400, oauthError('unsupported_grant_type'), 'rejected'],
    [401, oauthError('invalid_client'), 'rejected'],
    [401, '', 'rejected'],
    [403, oauthError('access_denied'), 'rejected'],
    [400, 'Bad Request', 'invalid_response'],
    [403, '<html>', 'invalid_response'],
    [404, '', 'invalid_response'],
    [302, '', 'invalid_response'],
    [201, oauthError('invalid_client'), 'invalid_response'],
    [408, '', 'unavailable'],
    [429, '', 'unavailable'],
    [500, '', 'unavailable'],
    [503, oauthError('temporarily_unavailable'), 'unavailable'],
    [400, oauthError('temporarily_unavailable'), 'unavailable'],
    [400, oauthError('slow_down'), 'unavailable'],
  ])('with status %i and body %j is %s', (status, body, result) => {
    expect(read({ status, body })).toMatchObject({ result });
  });

  it('repeats nothing of the answer but a registered error code', () => {
    expect(read({ status: 401, body: oauthError('invalid_client') })).toEqual({
      result: 'rejected',
      detail: 'status 401 invalid_client',
    });
    expect(read({ status: 400, body: oauthError('s3cret') })).toEqual({
      result: 'invalid_response',
      detail: 'status 400',
    });
  });
});

describe('Retry-After', () => {
  it.each([
    ['120', 120_000],
    ['0', 0],
    ['Tue, 01 Jan 2030 00:00:30 GMT', 30_000],
    ['Mon, 31 Dec 2029 23:00:00 GMT', 0],
    ['soon', undefined],
    ['-5', undefined],
    ['1.5', undefined],
    ['2030-01-01', undefined],
    [undefined, undefined],
  ])('%s is %s ms', (field, expected) => {
    expect(parseRetryAfter(field, NOW)).toBe(expected);
  });

  it('is taken from refusals', () => {
    expect(read({ status: 429, retryAfter: '7' })).toMatchObject({ retryAfterMs: 7000 });
  });
});
