import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hashSecret } from '../../../src/issuer/secret-hashing.ts';
import { askForToken, basic, FORM, type RunningIssuer, runIssuer, SHOP } from './running-issuer.ts';

const GRANT = 'grant_type=client_credentials';
const UTF8_SECRET = 'pä:ss+wörd %41 &=';

let issuer: RunningIssuer;

beforeAll(async () => {
  issuer = await runIssuer([
    SHOP,
    { clientId: 'bare', clientSecret: 'bare-secret' },
    { clientId: 'hashed', secretHash: await hashSecret('h4shed:secret', { ln: 4, r: 1, p: 1 }) },
    { clientId: 'tîtle: a+b%', clientSecret: UTF8_SECRET },
    { clientId: 'plus', clientSecret: 'a+b%2Fc' },
    { clientId: 'a+b', clientSecret: 'x%41' },
  ]);
});
afterAll(async () => await issuer.close());

type Change = Parameters<typeof askForToken>[1];

describe('rule 1: valid credentials and grant_type=client_credentials answer 200 with all six fields', () => {
  const form = (text: string) => encodeURIComponent(text).replaceAll('%20', '+');
  const valid: [name: string, change: Change][] = [
    ['as in the specification', {}],
    ['scheme in another case', { authorization: basic('shop', 's3cret').replace('Basic', 'bASIC') }],
    ['media type with a parameter', { contentType: `${FORM}; charset=UTF-8` }],
    ['media type in another case', { contentType: 'Application/X-WWW-Form-URLencoded' }],
    ['a query, which is not read', { query: '?grant_type=password&client_id=x' }],
    ['an unknown parameter, which is not read', { body: `${GRANT}&foo=bar` }],
    ['a parameter without a value, which counts as omitted', { body: `${GRANT}&scope=&audience` }],
    ['percent-encoded grant type', { body: 'grant%5Ftype=client%5fcredentials' }],
    ['the same client_id in the form', { body: `${GRANT}&client_id=shop` }],
    ['a client without scopes and audience', { authorization: basic('bare', 'bare-secret') }],
    ['a hashed secret with a colon in it', { authorization: basic('hashed', 'h4shed:secret') }],
    [
      'a form-encoded colon, plus, percent and UTF-8',
      {
        authorization: basic(form('tîtle: a+b%'), form(UTF8_SECRET)),
      },
    ],
    ['raw plus and percent in a secret', { authorization: basic('plus', 'a+b%2Fc') }],
    ['form-encoded plus and percent in a secret', { authorization: basic('plus', form('a+b%2Fc')) }],
  ];
  it.each(valid)('%s', async (_name, change) => {
    const { status, headers, json } = await askForToken(issuer.tokenUrl, change);
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('application/json');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('pragma')).toBe('no-cache');
    expect(Object.keys(json).sort()).toEqual([
      'access_token',
      'expires_in',
      'not-before-policy',
      'refresh_expires_in',
      'scope',
      'token_type',
    ]);
    expect(json).toMatchObject({
      access_token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
      expires_in: expect.any(Number),
      refresh_expires_in: 0,
      token_type: 'Bearer',
      'not-before-policy': 0,
      scope: expect.any(String),
    });
  });

  it('takes lifetime and scopes from the client', async () => {
    const { json } = await askForToken(issuer.tokenUrl);
    expect(json).toMatchObject({ expires_in: 60, scope: 'read write' });
  });

  it('takes the default lifetime, and no scope, for a client without', async () => {
    const { json } = await askForToken(issuer.tokenUrl, { authorization: basic('bare', 'bare-secret') });
    expect(json).toMatchObject({ expires_in: 300, scope: '' });
  });

  it('grants the scopes asked for, each once', async () => {
    const { json } = await askForToken(issuer.tokenUrl, { body: `${GRANT}&scope=write+write` });
    expect(json).toMatchObject({ scope: 'write' });
  });
});

describe('rule 2: a missing grant_type or an invalid parameter answers 400', () => {
  const padding = 'x'.repeat(16 * 1024);
  const invalid: [name: string, error: string, change: Change][] = [
    ['no body', 'invalid_request', { body: '' }],
    ['no grant_type', 'invalid_request', { body: 'scope=read' }],
    ['empty grant_type', 'invalid_request', { body: 'grant_type=' }],
    ['grant_type in the query alone', 'invalid_request', { body: '', query: `?${GRANT}` }],
    ['another grant', 'unsupported_grant_type', { body: 'grant_type=password&username=a&password=b' }],
    ['grant type in another case', 'unsupported_grant_type', { body: 'grant_type=CLIENT_CREDENTIALS' }],
    ['repeated grant_type', 'invalid_request', { body: `${GRANT}&${GRANT}` }],
    ['repeated grant_type, one empty', 'invalid_request', { body: `grant_type=&${GRANT}` }],
    ['repeated under an escaped name', 'invalid_request', { body: `${GRANT}&grant%5Ftype=x` }],
    ['repeated unknown parameter', 'invalid_request', { body: `${GRANT}&foo=1&foo=2` }],
    ['scope that the client may not have', 'invalid_scope', { body: `${GRANT}&scope=read+admin` }],
    ['scope with a quote', 'invalid_scope', { body: `${GRANT}&scope=re%22ad` }],
    ['scope with two spaces', 'invalid_scope', { body: `${GRANT}&scope=read++write` }],
    ['scope with a line end', 'invalid_scope', { body: `${GRANT}&scope=read%0A` }],
    ['audience that the client may not have', 'invalid_target', { body: `${GRANT}&audience=other` }],
    ['resource that the client may not have', 'invalid_target', { body: `${GRANT}&resource=https://x` }],
    ['malformed percent escape', 'invalid_request', { body: `${GRANT}&a=%zz` }],
    ['cut percent escape', 'invalid_request', { body: `${GRANT}&a=%4` }],
    ['escaped bytes that are not UTF-8', 'invalid_request', { body: `${GRANT}&a=%ff` }],
    ['bytes that are not UTF-8', 'invalid_request', { body: Buffer.from(`${GRANT}&a=\xff`, 'latin1') }],
    ['JSON', 'invalid_request', { contentType: 'application/json', body: '{"grant_type":"x"}' }],
    ['multipart', 'invalid_request', { contentType: 'multipart/form-data; boundary=x' }],
    ['a media type that only begins so', 'invalid_request', { contentType: `${FORM}2` }],
    ['content coding', 'invalid_request', { headers: { 'Content-Encoding': 'gzip' } }],
    ['body over 16 KiB', 'invalid_request', { body: `${GRANT}&a=${padding}` }],
    ['client secret in the form', 'invalid_request', { body: `${GRANT}&client_secret=s3cret` }],
    ['client assertion in the form', 'invalid_request', { body: `${GRANT}&client_assertion=x.y.z` }],
    ['another client_id in the form', 'invalid_request', { body: `${GRANT}&client_id=bare` }],
  ];
  it.each(invalid)('%s: %s', async (_name, error, change) => {
    const { status, headers, json } = await askForToken(issuer.tokenUrl, change);
    expect(status).toBe(400);
    expect(json).toEqual({
      error,
      error_description: expect.stringMatching(/^[\x20\x21\x23-\x5B\x5D-\x7E]+$/),
    });
    expect(headers.get('content-type')).toBe('application/json');
    expect(headers.get('cache-control')).toBe('no-store');
  });

  it('takes a body of exactly 16 KiB', async () => {
    const body = `${GRANT}&a=`.padEnd(16 * 1024, 'x');
    expect((await askForToken(issuer.tokenUrl, { body })).status).toBe(200);
  });
});

// Each wrong secret is answered after a second.
describe.concurrent('rule 3: invalid credentials answer 401 with a Basic challenge', () => {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const wrong: [name: string, authorization: string | null][] = [
    ['no header', null],
    ['empty header', ''],
    ['another scheme', `Bearer ${base64('shop:s3cret')}`],
    ['scheme alone', 'Basic'],
    ['no space', `Basic${base64('shop:s3cret')}`],
    ['not Base64', 'Basic shop:s3cret'],
    ['junk inside of the Base64', `Basic ${base64('shop:s3cret').replace('c2', 'c*2')}`],
    ['junk after the Base64', `Basic ${base64('shop:s3cret')} x`],
    ['Base64 without its padding', basic('shop', 's3cret').replace(/=+$/, '')],
    ['Base64 with bits that are not canonical', 'Basic c2hvcDpzM2NyZXR='],
    ['Base64url', `Basic ${Buffer.from('shop:s3cret\u00ff\u00fe?>').toString('base64url')}`],
    ['no colon', `Basic ${base64('shop')}`],
    ['not UTF-8', `Basic ${Buffer.from('shop:\xff', 'latin1').toString('base64')}`],
    ['wrong secret', basic('shop', 'wrong')],
    ['empty secret', basic('shop', '')],
    ['secret with more behind it', basic('shop', 's3cret\n')],
    ['secret of another client', basic('shop', 'bare-secret')],
    ['unknown client', basic('nobody', 's3cret')],
    ['empty id', basic('', 's3cret')],
    ['id in another case', basic('Shop', 's3cret')],
    ['wrong secret of a hashed client', basic('hashed', 'wrong')],
    ['the hash itself', basic('hashed', '$scrypt$')],
    ['id read raw, secret read form-encoded', basic('a+b', 'x%2541')],
  ];
  it.each(wrong)('%s', async (_name, authorization) => {
    const { status, headers, json } = await askForToken(issuer.tokenUrl, { authorization });
    expect(status).toBe(401);
    expect(headers.get('www-authenticate')).toBe('Basic realm="dx"');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(json).toEqual({ error: 'invalid_client', error_description: expect.any(String) });
  });

  it('answers the same to an unknown client and to a wrong secret', async () => {
    const unknown = await askForToken(issuer.tokenUrl, { authorization: basic('nobody', 'x') });
    const known = await askForToken(issuer.tokenUrl, { authorization: basic('shop', 'x') });
    expect(unknown.json).toEqual(known.json);
  });

  it.each([
    ['form', { body: 'grant_type=password' }],
    ['media type', { contentType: 'text/plain' }],
    ['size', { body: 'x'.repeat(20_000) }],
  ])('comes before any word on the %s', async (_what, change) => {
    const { status } = await askForToken(issuer.tokenUrl, { authorization: basic('shop', 'x'), ...change });
    expect(status).toBe(401);
  });

  it('is not helped by a secret in the form', async () => {
    const body = `${GRANT}&client_id=shop&client_secret=s3cret`;
    expect((await askForToken(issuer.tokenUrl, { authorization: null, body })).status).toBe(401);
  });
});

describe('the one operation', () => {
  it.each(['/', '/realms/dx', '/realms/other/protocol/openid-connect/token', '/metrics', '/jwks'])(
    '%s is 404',
    async (path) => {
      const response = await fetch(new URL(path, issuer.tokenUrl), { method: 'POST' });
      expect(response.status).toBe(404);
      expect(response.headers.get('content-type')).toBe('application/json');
    },
  );

  it.each([
    ['escaped', (path: string) => path.replace('token', '%74oken')],
    ['ended by a slash', (path: string) => `${path}/`],
    ['with a double slash', (path: string) => path.replace('/realms', '//realms')],
    ['in another case', (path: string) => path.replace('token', 'Token')],
  ])('the path %s is another path', async (_name, write) => {
    const { origin, pathname } = new URL(issuer.tokenUrl);
    expect((await askForToken(`${origin}${write(pathname)}`)).status).toBe(404);
  });

  it.each(['GET', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])('%s is 405', async (method) => {
    const response = await fetch(issuer.tokenUrl, { method });
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('POST');
  });

  it('is served below the base path of the public URL, and nowhere else', async () => {
    const authUrl = new URL('https://sso.example.com/auth/');
    const behind = await runIssuer([SHOP], { authUrl });
    try {
      expect(behind.issuer).toBe('https://sso.example.com/auth/realms/dx');
      const origin = `http://127.0.0.1:${behind.address.port}`;
      const path = '/realms/dx/protocol/openid-connect/token';
      expect((await askForToken(`${origin}/auth${path}`)).status).toBe(200);
      expect((await fetch(`${origin}${path}`, { method: 'POST' })).status).toBe(404);
    } finally {
      await behind.close();
    }
  });
});

describe('what is told to others', () => {
  it('holds no secret and no unknown client id', async () => {
    const sent = ['hunter2', 'mistyped-secret-as-id', 's3cret'];
    const wrong = [basic('shop', 'hunter2'), basic('mistyped-secret-as-id', 'hunter2')];
    await Promise.all(wrong.map((authorization) => askForToken(issuer.tokenUrl, { authorization })));
    await askForToken(issuer.tokenUrl, { body: `${GRANT}&client_secret=s3cret` });
    await askForToken(issuer.tokenUrl, { body: `${GRANT}&scope=hunter2`, query: '?s3cret' });
    const { json } = await askForToken(issuer.tokenUrl);
    const told = issuer.lines.join('') + (await issuer.registry.metrics());
    for (const secret of [...sent, String(json['access_token'])]) expect(told).not.toContain(secret);
    expect(told).toContain('"client":"shop"');
  });

  it('counts each end of a request', async () => {
    const own = await runIssuer();
    try {
      await askForToken(own.tokenUrl);
      await askForToken(own.tokenUrl, { authorization: null });
      await askForToken(own.tokenUrl, { body: `${GRANT}&scope=admin` });
      await fetch(new URL('/', own.tokenUrl));
      const text = await own.registry.metrics();
      for (const result of ['issued', 'invalid_client', 'invalid_scope', 'not_found']) {
        expect(text).toContain(`token_sidecar_issuer_tokens_total{result="${result}"} 1`);
        expect(text).toContain(`token_sidecar_issuer_request_duration_seconds_count{result="${result}"} 1`);
      }
    } finally {
      await own.close();
    }
  });
});
