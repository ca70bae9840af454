import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { CredentialSettings } from '../../src/config/config.ts';
import type { ClientCredentials } from '../../src/token/client/client-authentication.ts';
import { discovery, type UndiscoveredProvider } from '../../src/token/provider/discovery.ts';
import { createTokenEndpoint } from '../../src/token/provider/token-endpoint.ts';
import { credentialConfig } from '../support/credential-config.ts';
import { ManualClock } from '../support/manual-clock.ts';

const OIDC = '/realms/dx/.well-known/openid-configuration';
const RFC_8414 = '/.well-known/oauth-authorization-server/realms/dx';

const CLIENT: ClientCredentials = { method: 'client_secret_post', clientId: 'shop', clientSecret: 's3cret' };
const TOKEN = JSON.stringify({ access_token: 'abc', token_type: 'Bearer', expires_in: 300 });

type Page = (response: ServerResponse, request: IncomingMessage) => void;

const page =
  (status: number, body: unknown, headers: Record<string, string> = {}): Page =>
  (response) => {
    response.writeHead(status, headers);
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };

/** An issuer whose pages the test sets; what is not set is 404. It remembers what it was asked. */
async function startIssuer() {
  const pages = new Map<string, Page>();
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    request.resume();
    request.once('end', () => (pages.get(request.url ?? '') ?? page(404, ''))(response, request));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const issuer = `${origin}/realms/dx`;
  pages.set('/token', page(200, TOKEN));
  const metadata = (fields: Record<string, unknown> = {}) =>
    page(200, { issuer, token_endpoint: `${origin}/token`, ...fields });
  return { origin, issuer, pages, asked, metadata };
}

function openEndpoint(
  issuerUrl: string,
  settings: Partial<CredentialSettings> & { readonly permitsClearText?: true } = {},
) {
  const clock = new ManualClock();
  const endpoint = createTokenEndpoint(credentialConfig({ issuerUrl, ...settings }), clock);
  onTestFinished(() => endpoint.close());
  const request = () => endpoint.requestToken(CLIENT, new AbortController().signal);
  return { clock, endpoint, request };
}

describe('an issuer', () => {
  it('may have a token endpoint with a query, which is sent and not logged', async () => {
    const { issuer, origin, pages, asked, metadata } = await startIssuer();
    pages.set(OIDC, metadata({ token_endpoint: `${origin}/token?p=hidden_policy` }));
    pages.set(
      '/token?p=hidden_policy',
      page(400, { error: 'invalid_scope', error_description: 'HIDDEN_policy' }),
    );
    const { endpoint, request } = openEndpoint(issuer);
    const outcome = await request();
    expect(asked).toEqual([`GET ${OIDC}`, 'POST /token?p=hidden_policy']);
    expect(endpoint.tokenUrl()).toBe(`${origin}/token?…`);
    expect(outcome).toMatchObject({ result: 'rejected', detail: 'status 400 invalid_scope: […]' });
  });

  it.each([
    ['OpenID Connect', OIDC, [`GET ${OIDC}`]],
    ['RFC 8414', RFC_8414, [`GET ${OIDC}`, `GET ${RFC_8414}`]],
  ])('is found by the metadata of %s, which are kept', async (_name, path, lookups) => {
    const { issuer, origin, pages, asked, metadata } = await startIssuer();
    pages.set(path, metadata());
    const { endpoint, request, clock } = openEndpoint(issuer);
    expect(endpoint.tokenUrl()).toBeUndefined();
    expect(await request()).toMatchObject({ result: 'success', accessToken: 'abc' });
    expect(endpoint.tokenUrl()).toBe(`${origin}/token`);
    expect(endpoint.metadata()).toMatchObject({ foundAt: `${origin}${path}` });
    await clock.advance(3_599_000);
    await request();
    expect(asked).toEqual([...lookups, 'POST /token', 'POST /token']);
  });

  it('has its metadata read again after an hour, and a new token endpoint is used', async () => {
    const { issuer, origin, pages, asked, metadata } = await startIssuer();
    pages.set(OIDC, metadata());
    const { endpoint, request, clock } = openEndpoint(issuer);
    await request();
    pages.set(OIDC, metadata({ token_endpoint: `${origin}/new` }));
    pages.set('/new', page(200, TOKEN));
    await clock.advance(3_600_000);
    await request();
    expect(asked).toEqual([`GET ${OIDC}`, 'POST /token', `GET ${OIDC}`, 'POST /new']);
    expect(endpoint.tokenUrl()).toBe(`${origin}/new`);
  });

  it('has its metadata read again, at most once a minute, when the endpoint seems to have moved', async () => {
    const { issuer, origin, pages, asked, metadata } = await startIssuer();
    pages.set(OIDC, metadata());
    const { request, clock } = openEndpoint(issuer);
    await request();
    pages.set('/token', page(404, ''));
    pages.set(OIDC, metadata({ token_endpoint: `${origin}/new` }));
    pages.set('/new', page(200, TOKEN));
    expect(await request()).toEqual({
      result: 'invalid_response',
      detail: 'status 404',
      blames: 'unsaid',
      retryAfterMs: undefined,
    });
    await clock.advance(59_000);
    expect(await request()).toMatchObject({ detail: 'status 404' });
    await clock.advance(1000);
    expect(await request()).toMatchObject({ result: 'success' });
    expect(asked.filter((line) => line.startsWith('GET'))).toHaveLength(2);
  });

  it('does not have its metadata read again because the client is rejected', async () => {
    const { issuer, pages, asked, metadata } = await startIssuer();
    pages.set(OIDC, metadata());
    pages.set('/token', page(401, { error: 'invalid_client' }));
    const { request, clock } = openEndpoint(issuer);
    for (let count = 0; count < 3; count++) {
      expect(await request()).toMatchObject({ result: 'rejected' });
      await clock.advance(120_000);
    }
    expect(asked.filter((line) => line.startsWith('GET'))).toHaveLength(1);
  });

  it('that is unreachable or wrong later does not matter: the endpoint stays in use', async () => {
    const { issuer, pages, metadata } = await startIssuer();
    pages.set(OIDC, metadata());
    const { request, clock } = openEndpoint(issuer);
    await request();
    for (const broken of [page(503, ''), page(200, { issuer: 'https://evil.example.com' })]) {
      pages.set(OIDC, broken);
      await clock.advance(3_600_000);
      expect(await request()).toMatchObject({ result: 'success' });
    }
  });

  it('with mtls_endpoint_aliases gets clients with certificates at that endpoint', async () => {
    const { issuer, origin, pages, asked, metadata } = await startIssuer();
    pages.set(OIDC, metadata({ mtls_endpoint_aliases: { token_endpoint: `${origin}/mtls` } }));
    pages.set('/mtls', page(200, TOKEN));
    await openEndpoint(issuer, { clientAuth: { method: 'tls_client_auth' } }).request();
    await openEndpoint(issuer).request();
    expect(asked.filter((line) => line.startsWith('POST'))).toEqual(['POST /mtls', 'POST /token']);
  });

  it('does not get the client secret', async () => {
    const { issuer, pages, metadata } = await startIssuer();
    const seen: string[] = [];
    pages.set(OIDC, (response, request) => {
      seen.push(JSON.stringify(request.headers), request.url ?? '');
      metadata()(response, request);
    });
    await openEndpoint(issuer).request();
    expect(seen.join()).not.toContain('s3cret');
    expect(seen.join()).not.toContain('authorization"');
  });
});

describe('no token is requested when', () => {
  it.each<[string, Page, string, string]>([
    ['there is no metadata', page(404, ''), 'invalid_response', 'no metadata of the issuer: '],
    ['the issuer sends elsewhere', page(302, '', { location: '/x' }), 'invalid_response', 'status 302'],
    ['the issuer is away', page(503, ''), 'unavailable', 'openid-configuration: status 503'],
    ['the issuer is asked too often', page(429, ''), 'unavailable', 'openid-configuration: status 429'],
    ['the issuer waits for no more', page(408, ''), 'unavailable', 'openid-configuration: status 408'],
    ['the metadata is a page', page(200, '<html>'), 'invalid_response', 'is no JSON object'],
    ['the metadata has no end', page(200, 'x'.repeat(300_000)), 'invalid_response', 'more than 262144 bytes'],
    [
      'the metadata is that of another',
      page(200, { issuer: 'https://other.example.com', token_endpoint: 'https://other.example.com/token' }),
      'invalid_response',
      'is that of the issuer https://other.example.com, not of http://127.0.0.1:',
    ],
  ])('%s', async (_name, metadata, result, detail) => {
    const { issuer, pages, asked } = await startIssuer();
    pages.set(OIDC, metadata);
    expect(await openEndpoint(issuer).request()).toMatchObject({
      result,
      detail: expect.stringContaining(detail),
    });
    expect(asked.filter((line) => line.startsWith('POST'))).toEqual([]);
  });

  it('the issuer cannot be reached', async () => {
    expect(await openEndpoint('http://127.0.0.1:1/realms/dx').request()).toEqual({
      result: 'unavailable',
      detail: 'ECONNREFUSED',
    });
  });
});

it.each([
  [false, 'invalid_response'],
  [true, 'unavailable'],
])(
  'a token endpoint of another host in clear text is used if that is allowed: %s',
  async (permitsClearText, result) => {
    const { issuer, pages, metadata } = await startIssuer();
    pages.set(OIDC, metadata({ token_endpoint: 'http://sso.invalid/token' }));
    const { request } = openEndpoint(issuer, permitsClearText ? { permitsClearText: true } : {});
    expect(await request()).toMatchObject({ result });
  },
);

describe('issuer metadata', () => {
  const ISSUER = 'https://sso.example.com/realms/dx';
  const NOT_FOUND = { status: 404, contentType: '', retryAfter: undefined, date: undefined, body: '' };

  /** What an answer with these fields leads to, or why to nothing. */
  async function read(
    fields: Record<string, unknown>,
    issuerUrl = ISSUER,
    // As the configuration has it of an issuer in clear text.
    permitsClearText = issuerUrl.startsWith('http:'),
  ) {
    const body = JSON.stringify({ issuer: issuerUrl, ...fields });
    const expected = { issuerUrl, showsCertificate: false, permitsClearText };
    return await discovery(expected, new ManualClock())
      .metadata(async () => ({ ...NOT_FOUND, status: 200, body }))
      .catch(({ message }: UndiscoveredProvider) => ({ wrong: message }));
  }

  it.each([
    ['https://sso.example.com', '', ''],
    ['https://sso.example.com/', '', ''],
    [ISSUER, '/realms/dx', '/realms/dx'],
    ['https://sso.example.com/tenant/v2.0/', '/tenant/v2.0', '/tenant/v2.0'],
  ])('of %s are read from both well-known places', async (issuer, before, behind) => {
    const asked: string[] = [];
    const expected = { issuerUrl: issuer, showsCertificate: false, permitsClearText: false };
    const found = discovery(expected, new ManualClock()).metadata(async ({ href }) => {
      asked.push(href);
      return NOT_FOUND;
    });
    await expect(found).rejects.toThrow('no metadata of the issuer');
    expect(asked).toEqual([
      `https://sso.example.com${before}/.well-known/openid-configuration`,
      `https://sso.example.com/.well-known/oauth-authorization-server${behind}`,
    ]);
  });

  it.each([
    ['https://login.example.org/token', ISSUER],
    ['https://sso.example.com/token?tenant=a', ISSUER],
    ['https://sso.example.com:8443/token', ISSUER],
    ['http://127.0.0.1:8080/token', 'http://localhost:8080'],
    ['https://localhost/token', 'http://127.0.0.1:8080'],
    ['http://sso.internal/token', 'http://sso.internal'],
  ])('may name the endpoint %s of %s', async (token_endpoint, issuerUrl) => {
    expect(await read({ token_endpoint }, issuerUrl)).toMatchObject({ tokenUrl: token_endpoint });
  });

  it.each([
    ['http://sso.example.com/token', 'it is not https, as the issuer is'],
    ['https://shop:s3cret@sso.example.com/token', 'it has credentials in it'],
    ['https://sso.example.com/token#x', 'it has a fragment'],
    ['https://127.0.0.1/token', 'it is this machine, and the issuer is not'],
    ['https://[::1]/token', 'it is this machine, and the issuer is not'],
    ['https://localhost/token', 'it is this machine, and the issuer is not'],
    ['file:///etc/passwd', 'it is no http or https URL'],
    ['/token', 'it is no http or https URL'],
    ['https://sso.example.com/to ken', 'it is no URL'],
    ['https:\\\\evil.example.com', 'it is no URL'],
    [`https://sso.example.com/${'a'.repeat(2048)}`, 'it is no URL'],
    [7, 'it is no URL'],
  ])('may not name the endpoint %j', async (token_endpoint, why) => {
    const outcome = await read({ token_endpoint });
    expect(outcome).toEqual({ wrong: expect.stringContaining(why) });
    expect(JSON.stringify(outcome)).not.toContain('s3cret');
  });

  it('may name a clear-text endpoint of another host only if that is allowed', async () => {
    const issuerUrl = 'http://127.0.0.1:8080';
    const token_endpoint = 'http://sso.example.com/token';
    expect(await read({ token_endpoint }, issuerUrl, false)).toEqual({
      wrong: expect.stringContaining('it is not https: allowInsecureTokenUrl permits http'),
    });
    expect(await read({ token_endpoint }, issuerUrl, true)).toMatchObject({ tokenUrl: token_endpoint });
  });

  it('of another issuer are refused, quoting at most 200 characters of its name', async () => {
    const another = (length: number) => 'https://sso.example.com/'.padEnd(length, 'a');
    const token_endpoint = 'https://sso.example.com/token';
    expect(await read({ issuer: another(200), token_endpoint })).toEqual({
      wrong: expect.stringContaining(`the issuer ${another(200)},`),
    });
    expect(await read({ issuer: another(201), token_endpoint })).toEqual({
      wrong: expect.stringContaining('the issuer (no URL),'),
    });
  });

  it.each([[`${ISSUER}/`], ['https://SSO.example.com/realms/dx'], [undefined], [{}], ['x'.repeat(300)]])(
    'must name the issuer exactly: %j',
    async (issuer) => {
      expect(await read({ issuer, token_endpoint: 'https://sso.example.com/token' })).toEqual({
        wrong: expect.stringContaining(`not of ${ISSUER}`),
      });
    },
  );

  it('must name a token endpoint', async () => {
    expect(await read({})).toEqual({ wrong: expect.stringContaining('names no token_endpoint') });
  });

  it.each([
    [undefined, ['client_secret_basic']],
    [
      ['private_key_jwt', 5, 'none'],
      ['private_key_jwt', 'none'],
    ],
  ])('list the offered client authentication methods: %j', async (methods, clientAuthentication) => {
    const token_endpoint = 'https://sso.example.com/token';
    expect(await read({ token_endpoint, token_endpoint_auth_methods_supported: methods })).toMatchObject({
      clientAuthentication,
    });
  });
});
