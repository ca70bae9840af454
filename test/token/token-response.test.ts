import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type EndpointResponse, readTokenResponse } from '../../src/token/provider/token-response.ts';

const NOW = Date.parse('2030-01-01T00:00:00Z');

function read(answer: Partial<EndpointResponse>) {
  return readTokenResponse(
    {
      status: 200,
      contentType: 'application/json',
      retryAfter: undefined,
      body: '',
      requestedAtMs: NOW,
      receivedAtMs: NOW,
      ...answer,
    },
    { defaultLifetimeMs: 300_000 },
    [],
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
      'both, the JWT longer: what the answer says counts',
      { expires_in: 30, access_token: jwt({ iat: 100, exp: 160 }) },
      30_000,
    ],
    [
      'both, the JWT shorter: what it says itself',
      { expires_in: 300, access_token: jwt({ iat: NOW / 1000, exp: NOW / 1000 + 60 }) },
      60_000,
    ],
    [
      'both, the JWT out of a cache: what is left of it',
      { expires_in: 300, access_token: jwt({ iat: NOW / 1000 - 280, exp: NOW / 1000 + 20 }) },
      20_000,
    ],
    [
      'both, the JWT shorter and past by our clock, which is ahead: exp - iat',
      { expires_in: 300, access_token: jwt({ iat: NOW / 1000 - 3600, exp: NOW / 1000 - 3540 }) },
      60_000,
    ],
    [
      'both, the JWT without sense: what the answer says',
      { expires_in: 300, access_token: jwt({ iat: NOW / 1000, exp: 0 }) },
      300_000,
    ],
  ])('%s', (_name, fields, lifetimeMs) => {
    expect(grant(fields)).toMatchObject({ result: 'success', lifetimeMs });
  });

  it('of a JWT is measured by the provider’s clock if that differs', () => {
    const claims = { iat: NOW / 1000 - 290, exp: NOW / 1000 + 10 };
    const body = JSON.stringify({ access_token: jwt(claims), token_type: 'Bearer', expires_in: 300 });
    // Issued just now by a provider that is 290 s behind us.
    const date = new Date(NOW - 290_000).toUTCString();
    expect(read({ body, date })).toMatchObject({ lifetimeMs: 300_000 });
    // Our clocks agree: the token came from a cache.
    expect(read({ body, date: new Date(NOW - 10_000).toUTCString() })).toMatchObject({ lifetimeMs: 10_000 });
    expect(read({ body, date: new Date(NOW - 11_000).toUTCString() })).toMatchObject({ lifetimeMs: 21_000 });
    expect(read({ body, date: 'yesterday' })).toMatchObject({ lifetimeMs: 10_000 });
  });

  it.each([
    ['by a Date that agrees with our clock', 0, -300],
    ['by a Date of a provider that is behind us', -3600, -3900],
    ['by a Date of a provider that is ahead of us', 3600, 3300],
    ['at this very second', 0, 0],
  ])('ends if the JWT ended %s, whatever expires_in says', (_name, dateSeconds, expSeconds) => {
    const exp = NOW / 1000 + expSeconds;
    const date = new Date(NOW + dateSeconds * 1000).toUTCString();
    for (const expires_in of [300, undefined]) {
      const fields = { access_token: jwt({ iat: exp - 300, exp }), token_type: 'Bearer', expires_in };
      expect(read({ body: JSON.stringify(fields), date })).toEqual({
        result: 'invalid_response',
        detail: "the token has already ended: its exp is past by the answer's own Date",
      });
    }
  });

  it.each([undefined, 'yesterday'])('is exp - iat if a JWT seems to have ended and Date is %s', (date) => {
    const access_token = jwt({ iat: NOW / 1000 - 600, exp: NOW / 1000 - 300 });
    const body = JSON.stringify({ access_token, token_type: 'Bearer', expires_in: 600 });
    expect(read({ body, date })).toMatchObject({ result: 'success', lifetimeMs: 300_000 });
  });

  it('of a JWT ends with the JWT, however long the grant took', () => {
    const accessToken = jwt({ exp: NOW / 1000 + 5 });
    const body = JSON.stringify({ access_token: accessToken, token_type: 'Bearer', expires_in: 300 });
    expect(read({ body, requestedAtMs: NOW, receivedAtMs: NOW + 3000 })).toMatchObject({ lifetimeMs: 5000 });
  });

  it.each([0, -1, '0', '-1', ' 60', '60s', true, [], {}, [60]])('refuses %j', (expires_in) => {
    expect(grant({ expires_in })).toMatchObject({ result: 'invalid_response' });
  });
});

it('a JWT without expires_in that has expired is refused', () => {
  const access_token = jwt({ iat: NOW / 1000 - 600, exp: NOW / 1000 - 300 });
  expect(grant({ expires_in: undefined, access_token })).toEqual({
    result: 'invalid_response',
    detail: 'expires_in is missing and the exp of the token itself is past or makes no sense',
  });
});

describe('a grant response', () => {
  it.each(['Bearer', 'bearer', 'BEARER'])('may have token_type %s', (token_type) => {
    expect(grant({ token_type })).toMatchObject({ result: 'success', accessToken: 'abc' });
  });

  it('is accepted although it has an error too', () => {
    expect(grant({ error: 'slow_down' })).toMatchObject({ result: 'success', accessToken: 'abc' });
  });

  it('may have a token of the maximal length', () => {
    expect(grant({ access_token: 'a'.repeat(65_536) })).toMatchObject({ result: 'success' });
    expect(grant({ access_token: 'a'.repeat(65_537) })).toMatchObject({ result: 'invalid_response' });
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
  ])('with the response %s is invalid', (_name, body) => {
    expect(read({ body })).toEqual({
      result: 'invalid_response',
      detail: `status 200 with ${body === '' ? 'an empty body' : 'application/json'} where a JSON object was expected`,
    });
  });

  it.each([
    ['text/html; charset=utf-8', 'text/html'],
    ['Application/XML ;q=1;\n', 'Application/XML'],
    ['text/html <script>', 'an unnamed type'],
    ['<script> text/html', 'an unnamed type'],
    [`${'a'.repeat(41)}/b`, 'an unnamed type'],
    [`a/${'b'.repeat(61)}`, 'an unnamed type'],
    ['', 'an unnamed type'],
  ])('of type %j is reported as %s', (contentType, what) => {
    expect(read({ contentType, body: 'x' })).toMatchObject({
      detail: `status 200 with ${what} where a JSON object was expected`,
    });
  });
});

describe('an error response', () => {
  it.each<[number, string, 'client' | 'subject' | 'unsaid']>([
    [401, 'invalid_client', 'client'],
    [400, 'unauthorized_client', 'client'],
    [503, 'invalid_client', 'client'],
    [400, 'invalid_request', 'subject'],
    [400, 'invalid_grant', 'subject'],
    [401, 'invalid_token', 'subject'],
    [400, 'invalid_subject_token', 'subject'],
    [403, 'access_denied', 'subject'],
    [500, 'invalid_grant', 'unsaid'],
    [400, 'invalid_scope', 'unsaid'],
    // Words of the provider's own that begin as those of the protocol do.
    [400, 'invalid_grant-expired', 'unsaid'],
    [400, 'invalid_client: of yours', 'unsaid'],
    [400, 'INVALID_GRANT', 'unsaid'],
  ])('%i %s blames: %s', (status, error, blames) => {
    expect(read({ status, body: JSON.stringify({ error }) })).toMatchObject({ blames });
  });

  it('without an error code blames nobody', () => {
    expect(read({ status: 403, body: '<html>' })).toMatchObject({ blames: 'unsaid' });
  });

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
    [403, '<html>', 'rejected'],
    [403, oauthError('invalid_client_id'), 'rejected'],
    [400, oauthError('invalid_client_id'), 'rejected'],
    [400, JSON.stringify({ error: { code: 190, message: 'no such client' } }), 'rejected'],
    [200, oauthError('incorrect_client_credentials'), 'rejected'],
    [200, JSON.stringify({ ok: false, error: 'invalid_client_id' }), 'rejected'],
    [200, JSON.stringify({ error: { type: 'OAuthException' } }), 'rejected'],
    [200, oauthError('temporarily_unavailable'), 'unavailable'],
    [200, JSON.stringify({ error: null }), 'invalid_response'],
    [400, JSON.stringify({ error: '' }), 'invalid_response'],
    [404, oauthError('realm_not_found'), 'invalid_response'],
    [404, '', 'invalid_response'],
    [302, '', 'invalid_response'],
    [201, oauthError('invalid_client'), 'invalid_response'],
    [408, '', 'unavailable'],
    [429, '', 'unavailable'],
    [500, '', 'unavailable'],
    [503, oauthError('temporarily_unavailable'), 'unavailable'],
    [400, oauthError('temporarily_unavailable'), 'unavailable'],
    [400, oauthError('slow_down'), 'unavailable'],
    [400, oauthError('server_error'), 'unavailable'],
    [401, oauthError('server_error'), 'unavailable'],
  ])('with status %i and body %j is %s', (status, body, result) => {
    expect(read({ status, body })).toMatchObject({ result });
  });

  const detail = (fields: object, secrets: readonly string[] = ['shop:s3cret+', 's3cret+', 'shop']) => {
    const answer = {
      status: 400,
      contentType: '',
      retryAfter: undefined,
      requestedAtMs: NOW,
      receivedAtMs: NOW,
    };
    const read = readTokenResponse(
      { ...answer, body: JSON.stringify(fields) },
      { defaultLifetimeMs: 1 },
      secrets,
    );
    return read.result === 'success' ? '' : read.detail;
  };

  it.each<[string, object, string]>([
    ['a registered error', { error: 'invalid_scope' }, 'invalid_scope'],
    [
      'a description',
      { error: 'invalid_client', error_description: 'Invalid client or Invalid client credentials' },
      'invalid_client: Invalid client or Invalid client credentials',
    ],
    ['an error of its own', { error: 'invalid_client_id' }, 'invalid_client_id'],
    ['an error object', { error: { code: 190, message: 'No such app' } }, '190: No such app'],
    [
      'line breaks, controls and what turns the reading direction',
      { error: 'x', error_description: 'a\r\nb\u0000\u001b[31mc\u202ed\u2028e' },
      'x: a b [31mcd e',
    ],
    [
      'the secret and the client id',
      { error: 'shop', error_description: 'Shop has s3cret+, not S3CRET%2B' },
      '[…]: […] has […], not […]',
    ],
    [
      'the secret, parted by what cannot be seen',
      { error: 'x', error_description: 's3\u200bcr\u2060et+' },
      'x: […]',
    ],
    [
      'the Basic pair',
      { error: 'x', error_description: `got ${Buffer.from('shop:s3cret+').toString('base64')}` },
      'x: got […]',
    ],
    [
      'the secret in the references of HTML',
      { error: 'x', error_description: '&lt;b&gt;s3cret&#43;&#X2B;&#99999999;' },
      'x: <b>[…]+&#99999999;',
    ],
    ['a page', { error: 'x', error_description: '<p>'.repeat(2000) }, 'x: […]'],
    [
      'what looks like a token',
      { error: 'x', error_description: `eyJhbGciOiJub25lIn0.e30.c2ln ${'a1'.repeat(10)} ${'a'.repeat(60)}` },
      'x: […] […] […]',
    ],
    ['a long one', { error: 'x', error_description: 'no '.repeat(200) }, `x: ${'no '.repeat(66)}n…`],
    ['a long error', { error: 'no '.repeat(99) }, `${'no '.repeat(21)}…`],
    [
      'two hundred characters whole',
      { error: 'x', error_description: `${'no '.repeat(66)}no` },
      `x: ${'no '.repeat(66)}no`,
    ],
    ['a description that is no string', { error: 'x', error_description: { a: 1 } }, 'x'],
    ['a description without the space around it', { error: 'x', error_description: ' a ' }, 'x: a'],
    ['a character reference to nothing', { error: 'x', error_description: '&#9999999;' }, 'x: &#9999999;'],
    ['a space for what is no character', { error: 'x', error_description: 'a&#x10ffff;b' }, 'x: a b'],
    [
      'a page of 4096 characters',
      { error: 'x', error_description: 'no, '.repeat(1024) },
      `x: ${'no, '.repeat(49)}no,…`,
    ],
    ['a word of 48 letters', { error: 'x', error_description: 'a'.repeat(48) }, `x: ${'a'.repeat(48)}`],
    ['no word of 49', { error: 'x', error_description: 'a'.repeat(49) }, 'x: […]'],
    ['an empty description', { error: 'x', error_description: '' }, 'x'],
    ['a message', { error: 'x', message: 'No such app' }, 'x: No such app'],
    [
      'an error object with a name of its own',
      { error: { error: 'y', code: 190, description: 'No' } },
      'y: No',
    ],
    ['an error object with an empty code', { error: { code: '', type: 'z' } }, 'z'],
    ['an error object with a status', { error: { status: 'DENIED' } }, 'DENIED'],
    ['an error object without a name', { error: { message: 'No such app' } }, 'error: No such app'],
    ['words with two humps', { error: 'x', error_description: 'abcdeFghiJklmnopq' }, 'x: abcdeFghiJklmnopq'],
    ['no word with three', { error: 'x', error_description: 'aBcdeFghiJklmnopq' }, 'x: […]'],
    [
      'what HTML writes otherwise',
      { error: 'x', error_description: '&lt;&quot;a&quot; &amp; &apos;b&apos;&gt;' },
      `x: <"a" & 'b'>`,
    ],
  ])('is shown with %s', (_name, fields, shown) => {
    expect(detail(fields)).toBe(`status 400 ${shown}`);
  });

  it.each([
    ['has characters that cannot be seen', 's3\u00adcret', 's3cret'],
    ['looks like HTML', 'a&amp;b&#43;c', 'a&amp;b&#43;c'],
    ['is repeated without padding', 'a>?b', 'YT4/Yg'],
    ['is repeated as in a form', 'a (b)', 'a+%28b%29'],
    ['is repeated as in a path', 'a (b)', 'a%20(b)'],
    ['is repeated as in JSON', 'a"b"c', 'a\\"b\\"c'],
    ['has three characters', 'a:b', 'a:b'],
    ['is part of its own encoding', 'abc%', 'abc%25'],
  ])('is shown without a secret that %s', (_name, secret, said) => {
    expect(detail({ error: 'x', error_description: `of ${said}.` }, [secret])).toBe('status 400 x: of […].');
  });

  it('is shown in full if the secret cannot occur in it', () => {
    expect(detail({ error: 'x', error_description: 'no client' }, ['\u200b\u200b\u200b'])).toBe(
      'status 400 x: no client',
    );
  });

  it.each([
    'invalid_request',
    'invalid_client',
    'invalid_grant',
    'unauthorized_client',
    'unsupported_grant_type',
    'invalid_scope',
    'invalid_target',
    'access_denied',
    'server_error',
    'temporarily_unavailable',
    'slow_down',
  ])('keeps %s, a word of the protocol, even if a client has that name', (error) => {
    expect(detail({ error }, [error])).toBe(`status 400 ${error}`);
  });

  it('stays readable if the client’s name is a word of the protocol', () => {
    expect(detail({ error: 'invalid_client', error_description: 'no client' }, ['client'])).toBe(
      'status 400 invalid_client: no […]',
    );
  });

  it('shows nothing that contains a secret of one or two letters', () => {
    expect(detail({ error: 'invalid_client', error_description: 'a wrong secret' }, ['a'])).toBe(
      'status 400 invalid_client: […]',
    );
  });

  it('shows no secret, wherever the provider puts it', () => {
    fc.assert(
      fc.property(
        fc
          .string({ minLength: 3, maxLength: 40 })
          .filter((secret) => /^[!-~]{3,}$/.test(secret) && !'status 400: […]'.includes(secret)),
        fc.string(),
        fc.string(),
        (secret, before, after) => {
          const shown = detail({ error: before + secret, error_description: before + secret + after }, [
            secret,
          ]);
          expect(shown).not.toContain(secret);
          expect(shown.length).toBeLessThan(300);
        },
      ),
    );
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
    ['x Tue, 01 Jan 2030 00:00:30 GMT', undefined],
    ['Tue, 01 Jan 2030 00:00:30 GMT x', undefined],
    ['Tue, 01 Jan 2030 00:00:30 GMT+0000', undefined],
    [undefined, undefined],
  ])('%s means %s ms', (field, expected) => {
    expect(read({ status: 429, retryAfter: field })).toMatchObject({ retryAfterMs: expected });
  });
});
