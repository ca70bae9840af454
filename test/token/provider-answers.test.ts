/** What real providers answer, each over a real socket: one row an answer, with the name of who gives it. */

import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { CredentialSettings } from '../../src/config/config.ts';
import { systemClock } from '../../src/platform/time/clock.ts';
import { VERSION } from '../../src/platform/version.ts';
import type { ClientCredentials } from '../../src/token/client/client-authentication.ts';
import { createTokenEndpoint } from '../../src/token/provider/token-endpoint.ts';
import { credentialConfig } from '../support/credential-config.ts';
import { ScriptedTokenEndpoint } from '../support/scripted-token-endpoint.ts';
import { RENEWAL } from './policy.ts';

interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Encoded as JSON. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** Instead of fields. */
  readonly body?: Buffer | string;
}

const CLIENT: ClientCredentials = { method: 'client_secret_post', clientId: 'shop', clientSecret: 's3cret' };

async function grant(
  { status = 200, headers = { 'content-type': 'application/json' }, fields, body }: Answer,
  settings: Partial<CredentialSettings> = {},
  ending?: string,
) {
  const agents: (string | undefined)[] = [];
  const provider = await ScriptedTokenEndpoint.start((response, request) => {
    agents.push(request.headers['user-agent']);
    response.writeHead(status, headers);
    response.end(body ?? JSON.stringify(fields));
  });
  const endpoint = createTokenEndpoint(
    credentialConfig({ tokenUrl: provider.url, ...settings }),
    systemClock,
  );
  onTestFinished(() => endpoint.close());
  const outcome = await endpoint.requestToken(CLIENT, new AbortController().signal, { ending });
  return { outcome, agents };
}

const ZERO = 'expires_in is 0: the token has ended; if it has no end, set renewal.zeroLifetime: endless';
const USUAL = { access_token: 'abc', token_type: 'Bearer', expires_in: 3600 };
const JSON_BYTES = Buffer.from(JSON.stringify(USUAL));

function jwt(claims: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'none' })}.${part(claims)}.c2ln`;
}

const nowSeconds = Math.floor(Date.now() / 1000);
const hourLong = jwt({ iat: nowSeconds, exp: nowSeconds + 3600 });

describe('an answer with a token is accepted', () => {
  it.each<[string, Answer, string]>([
    [
      'Salesforce: an exclamation mark',
      { fields: { ...USUAL, access_token: '00D!AQcAQ_x.y' } },
      '00D!AQcAQ_x.y',
    ],
    ['X: a percent sign', { fields: { ...USUAL, access_token: 'AAAA%2FAAA%3D' } }, 'AAAA%2FAAA%3D'],
    ['Facebook: a bar', { fields: { ...USUAL, access_token: '123|aBc-D_e' } }, '123|aBc-D_e'],
    [
      'eBay: a circumflex and a number sign',
      { fields: { ...USUAL, access_token: 'v^1.1#i^1#p^1' } },
      'v^1.1#i^1#p^1',
    ],
    ['Google: dots at the end', { fields: { ...USUAL, access_token: 'ya29.c.b0Aa....' } }, 'ya29.c.b0Aa....'],
    [
      'any visible ASCII',
      { fields: { ...USUAL, access_token: `a"'(),:;<>?@[\\]{}&*` } },
      `a"'(),:;<>?@[\\]{}&*`,
    ],
    ['Shopify: 201', { status: 201, fields: USUAL }, 'abc'],
    [
      'Keycloak behind a gateway: gzip',
      { headers: { 'content-encoding': 'gzip' }, body: gzipSync(JSON_BYTES) },
      'abc',
    ],
    [
      'an old proxy: x-gzip',
      { headers: { 'content-encoding': 'X-GZIP' }, body: gzipSync(JSON_BYTES) },
      'abc',
    ],
    ['IIS: deflate', { headers: { 'content-encoding': 'deflate' }, body: deflateSync(JSON_BYTES) }, 'abc'],
    [
      'Cloudflare: br',
      { headers: { 'content-encoding': 'br' }, body: brotliCompressSync(JSON_BYTES) },
      'abc',
    ],
    ['identity, said aloud', { headers: { 'content-encoding': 'identity' }, body: JSON_BYTES }, 'abc'],
    [
      '.NET: a byte order mark',
      { body: Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), JSON_BYTES]) },
      'abc',
    ],
    ['a byte order mark of UTF-16', { body: Buffer.from(`\ufeff${JSON_BYTES}`, 'utf16le') }, 'abc'],
    [
      'a byte order mark of UTF-16, the other way round',
      { body: Buffer.from(`\ufeff${JSON_BYTES}`, 'utf16le').swap16() },
      'abc',
    ],
    [
      'Oracle: ISO-8859-1, in quotes',
      { headers: { 'content-type': 'application/json; charset="ISO-8859-1"' }, body: JSON_BYTES },
      'abc',
    ],
    [
      'UTF-16 by its type alone',
      {
        headers: { 'content-type': 'application/json;charset=utf-16le' },
        body: Buffer.from(JSON_BYTES.toString(), 'utf16le'),
      },
      'abc',
    ],
    [
      'UTF-16 by its type, after white space',
      {
        headers: { 'content-type': 'application/json; charset=utf-16le' },
        body: Buffer.from(JSON_BYTES.toString(), 'utf16le'),
      },
      'abc',
    ],
    [
      'a charset that nobody knows',
      { headers: { 'content-type': 'application/json; charset=none' }, body: JSON_BYTES },
      'abc',
    ],
    [
      'Facebook once: JSON as text/javascript',
      { headers: { 'content-type': 'text/javascript' }, body: JSON_BYTES },
      'abc',
    ],
  ])('%s', async (_name, answer, accessToken) => {
    const { outcome } = await grant(answer);
    expect(outcome).toMatchObject({ result: 'success', accessToken });
  });
});

describe('the lifetime of a provider’s token', () => {
  it.each<[string, Record<string, unknown>, number]>([
    ['Apigee: a string', { expires_in: '3599' }, 3_599_000],
    ['Entra ID v1: a string', { expires_in: '3599', ext_expires_in: '3599' }, 3_599_000],
    ['a string with decimals', { expires_in: '3599.0' }, 3_599_000],
    ['a number with decimals', { expires_in: 3599.5 }, 3_599_500],
    ['a string with an exponent', { expires_in: '36e2' }, 3_600_000],
    ['a string that begins with zeros', { expires_in: '0003600' }, 3_600_000],
    ['Salesforce, X: none', { expires_in: undefined }, 300_000],
    ['an empty string', { expires_in: '' }, 300_000],
    [
      'an empty string beside a JWT that says it itself',
      { access_token: hourLong, expires_in: '' },
      3_600_000,
    ],
    ['a JWT that says it itself', { access_token: hourLong, expires_in: undefined }, 3_600_000],
    ['0 beside a JWT that says it itself', { access_token: hourLong, expires_in: 0 }, 3_600_000],
    ['"0" beside a JWT that says it itself', { access_token: hourLong, expires_in: '0' }, 3_600_000],
    ['WSO2: without end is renewed daily', { expires_in: 2 ** 63 }, 86_400_000],
    ['WSO2: without end, as a string', { expires_in: '9223372036854775807' }, 86_400_000],
    ['without end, as a string with an exponent', { expires_in: '1e400' }, 86_400_000],
    ['without end, in a JWT with one', { access_token: hourLong, expires_in: 1e18 }, 3_600_000],
  ])('%s', async (_name, fields, lifetimeMs) => {
    const { outcome } = await grant({ fields: { ...USUAL, ...fields } });
    expect(outcome).toMatchObject({ result: 'success' });
    // Of a JWT what is left: the request took a moment, and began at a fraction of a second.
    const { lifetimeMs: said } = outcome as { lifetimeMs: number };
    expect(said).toBeLessThanOrEqual(lifetimeMs);
    expect(said).toBeGreaterThan(lifetimeMs - 60_000);
  });

  it.each([0, '0', '0.0', 0.0])(
    'for Kong, %j of an opaque token is no lifetime unless configured as no end',
    async (expires_in) => {
      const fields = { ...USUAL, expires_in };
      expect((await grant({ fields })).outcome).toEqual({ result: 'invalid_response', detail: ZERO });
      const endless = { renewal: { ...RENEWAL, zeroLifetime: 'endless' } } as const;
      // The same token, a day later, is no token that has ended.
      for (const ending of [undefined, USUAL.access_token]) {
        const { outcome } = await grant({ fields }, endless, ending);
        expect(outcome).toMatchObject({ result: 'success', lifetimeMs: 86_400_000 });
      }
    },
  );

  it('0 configured as no end leaves a JWT the expiry that it states', async () => {
    const fields = { ...USUAL, access_token: hourLong, expires_in: 0 };
    const { outcome } = await grant({ fields }, { renewal: { ...RENEWAL, zeroLifetime: 'endless' } });
    expect((outcome as { lifetimeMs: number }).lifetimeMs).toBeLessThanOrEqual(3_600_000);
  });

  const ended = jwt({ iat: nowSeconds - 3600, exp: nowSeconds - 1 });

  it.each<[string, string, unknown]>([
    ['0', 'opaque', 0],
    ['"0"', 'opaque', '0'],
    ['less than 0', 'opaque', -1],
    ['an exp that is past', ended, undefined],
    ['an exp that is past, and 0', ended, 0],
  ])(
    'for WSO2, %s of the held token that is about to expire is accepted',
    async (_name, access_token, expires_in) => {
      const fields = { ...USUAL, access_token, expires_in };
      const { outcome } = await grant({ fields }, {}, access_token);
      expect(outcome).toMatchObject({ result: 'success', lifetimeMs: 0 });
      expect((await grant({ fields }, {}, 'another')).outcome).toMatchObject({ result: 'invalid_response' });
    },
  );

  it('the held token that is about to expire may get a longer lifetime', async () => {
    const { outcome } = await grant({ fields: { ...USUAL, expires_in: 2 } }, {}, 'abc');
    expect(outcome).toMatchObject({ result: 'success', lifetimeMs: 2000 });
  });
});

describe('a meaningless lifetime is refused', () => {
  it.each([
    '1h',
    ' ',
    '0x10',
    '1_000',
    'Infinity',
    'NaN',
    '1e',
    '.',
    '-1',
    '-3599.5',
    -1,
    true,
    [3600],
    { seconds: 3600 },
  ])('%j', async (expires_in) => {
    const { outcome } = await grant({ fields: { ...USUAL, expires_in } });
    expect(outcome).toEqual({
      result: 'invalid_response',
      detail: 'expires_in is not a number of seconds from 1',
    });
  });
});

describe('tokenType: any', () => {
  it.each([
    ['LinkedIn, Shopify: none', undefined, 'missing'],
    ['null', null, 'missing'],
    ['Apigee', 'BearerToken', 'BearerToken'],
    ['eBay', 'Application Access Token', 'Application Access Token'],
    ['a token exchange that names none', 'N_A', 'N_A'],
    ['what is no name', '<script>', 'no plain name'],
    ['what only ends as a name', '<b>Bearer of', 'no plain name'],
    ['what is no string', ['Bearer'], 'no plain name'],
  ])('accepts what is refused otherwise: %s', async (_name, token_type, shown) => {
    const fields = { ...USUAL, token_type };
    expect((await grant({ fields })).outcome).toEqual({
      result: 'invalid_response',
      detail: `token_type is ${shown}, not Bearer; if the token is used like one, set tokenType: any`,
    });
    expect((await grant({ fields }, { tokenType: 'any' })).outcome).toMatchObject({ result: 'success' });
  });

  it.each([
    ['mac', 'MAC'],
    ['PoP', 'PoP'],
  ])('never accepts %s', async (token_type, name) => {
    for (const settings of [{}, { tokenType: 'any' as const }]) {
      expect((await grant({ fields: { ...USUAL, token_type } }, settings)).outcome).toEqual({
        result: 'invalid_response',
        detail: `token_type is ${name}: every request with such a token needs a proof, which the sidecar does not make`,
      });
    }
  });
});

describe('an answer that would break a header or the program is refused', () => {
  const bomb = gzipSync(Buffer.alloc(50 * 1024 * 1024, ' '));
  const unusable =
    'access_token has a character that no header can carry: a space, a control, or one beyond ASCII';

  it.each<[string, Answer, string]>([
    ['a line break', { fields: { ...USUAL, access_token: 'a\r\nx: b' } }, unusable],
    ['a space', { fields: { ...USUAL, access_token: 'a b' } }, unusable],
    ['a tab', { fields: { ...USUAL, access_token: 'a\tb' } }, unusable],
    ['a null', { fields: { ...USUAL, access_token: 'a\u0000' } }, unusable],
    ['DEL', { fields: { ...USUAL, access_token: 'a\u007f' } }, unusable],
    ['an umlaut', { fields: { ...USUAL, access_token: 'ä' } }, unusable],
    ['no token', { fields: { ...USUAL, access_token: '' } }, 'access_token is missing'],
    [
      '50 MiB in 50 KiB',
      { headers: { 'content-encoding': 'gzip' }, body: bomb },
      'an answer of more than 262144 bytes',
    ],
    [
      'what is no gzip',
      { headers: { 'content-encoding': 'gzip' }, body: 'S3CRET' },
      'a body that is not gzip, though its Content-Encoding says so',
    ],
    [
      'gzip that breaks off',
      { headers: { 'content-encoding': 'gzip' }, body: gzipSync(JSON_BYTES).subarray(0, 40) },
      'a body that is not gzip, though its Content-Encoding says so',
    ],
    [
      'a coding of which nobody has heard',
      { headers: { 'content-encoding': 'S3CRET' }, body: JSON_BYTES },
      'a body in a Content-Encoding other than gzip, deflate and br',
    ],
    [
      '201 without a token',
      { status: 201, body: '' },
      'status 201 with an empty body where a JSON object was expected',
    ],
  ])('%s', async (_name, answer, detail) => {
    expect((await grant(answer)).outcome).toEqual({ result: 'invalid_response', detail });
  });
});

it('token requests have a User-Agent for firewalls', async () => {
  expect((await grant({ fields: USUAL })).agents).toEqual([`token-sidecar/${VERSION}`]);
});
