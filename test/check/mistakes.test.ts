import { describe, expect, it } from 'vitest';
import { mistakeInUrl, mistakeOf, refusalIn } from '../../src/check/mistakes.ts';
import type { CredentialSettings } from '../../src/config/config.ts';
import { credentialConfig } from '../support/credential-config.ts';

type Refusal = ReturnType<typeof refusalIn>;

type GrantCase = Parameters<typeof mistakeOf>[0];

const KEYCLOAK = 'https://sso.example.com/realms/dx/protocol/openid-connect/token';
const ENTRA = 'https://login.microsoftonline.com/tenant/oauth2/v2.0/token';

type Case = Partial<Omit<GrantCase, 'url' | 'config'>> & { readonly settings?: Partial<CredentialSettings> };

function grantCase(tokenUrl: string, { settings = {}, ...rest }: Case = {}): GrantCase {
  return { url: new URL(tokenUrl), config: credentialConfig({ tokenUrl, ...settings }), ...rest };
}

function refused(status: number, error?: string): Refusal {
  return { status, mediaType: 'application/json', error };
}

describe('a URL shows by itself', () => {
  it.each([
    [
      'https://sso.example.com/auth/realms/shop/realms/dx/protocol/openid-connect/token',
      'realm in the base URL',
      'set it to https://sso.example.com/auth, and realm to shop',
    ],
    [
      'https://sso.example.com/realms/dx/protocol/openid-connect/token/realms/dx/protocol/openid-connect/token',
      'token endpoint in the base URL',
      'token-url',
    ],
    [
      'https://login.example.com/tenant/.well-known/openid-configuration',
      'metadata in place of the token endpoint',
      'set issuerUrl to https://login.example.com/tenant',
    ],
    ['https://sso.example.com/realms/dx', 'issuer in place of the token endpoint', 'set it as issuerUrl'],
    ['https://login.example.com/oauth2/authorize', 'login page in place of the token endpoint', '/token'],
  ])('%s: %s', (url, name, remedy) => {
    expect(mistakeInUrl(grantCase(url))).toEqual({ name, remedy: expect.stringContaining(remedy) });
  });

  it.each([KEYCLOAK, ENTRA, 'https://oauth2.googleapis.com/token', 'http://127.0.0.1:15090/oauth/token'])(
    'nothing is wrong with %s',
    (url) => expect(mistakeInUrl(grantCase(url))).toBeUndefined(),
  );
});

describe('a refusal shows', () => {
  const rejected = refused(401, 'invalid_client');
  const uuid = '11111111-2222-3333-4444-555555555555';
  const encoded = Buffer.from('correct horse battery').toString('base64');

  it.each<[string, string, Case, string]>([
    ['realm that there is not', KEYCLOAK, { refusal: refused(404, 'Realm does not exist') }, 'no realm dx'],
    [
      'realm or base URL that there is not',
      KEYCLOAK,
      { refusal: refused(404) },
      'the realm, dx; Keycloak before 17',
    ],
    [
      'realm or base URL that there is not',
      KEYCLOAK.replace('/realms', '/auth/realms'),
      { refusal: refused(404) },
      'from 17',
    ],
    ['redirect', KEYCLOAK, { refusal: refused(301) }, 'write the URL'],
    ['page in place of a token', KEYCLOAK, { refusal: { status: 200, mediaType: 'text/html' } }, 'web page'],
    ['id in place of the secret', ENTRA, { refusal: rejected, client: { id: 'a', secret: uuid } }, 'value'],
    [
      'client_id in place of the secret',
      KEYCLOAK,
      { refusal: rejected, client: { id: 'a', secret: 'a' } },
      'same',
    ],
    ['Base64 twice', KEYCLOAK, { refusal: rejected, client: { id: 'a', secret: encoded } }, 'stringData'],
    [
      'client authentication that is not offered',
      KEYCLOAK,
      { refusal: rejected, offered: ['client_secret_post'] },
      'clientAuth: client_secret_post',
    ],
    ['encoding of Basic', KEYCLOAK, { refusal: rejected, client: { id: 'a', secret: 'p+ss' } }, 'raw'],
    [
      'encoding of Basic',
      KEYCLOAK,
      {
        refusal: rejected,
        client: { id: 'a', secret: 'p+ss' },
        settings: { clientAuth: { method: 'client_secret_basic', encoding: 'raw' } },
      },
      'form',
    ],
    [
      'clock',
      KEYCLOAK,
      {
        refusal: refused(400, 'invalid_client'),
        skewMs: -60_000,
        settings: { clientAuth: { method: 'private_key_jwt', keyFile: 'key' } },
      },
      'clock of the node',
    ],
    [
      'grant that is not allowed',
      KEYCLOAK,
      { refusal: refused(401, 'unauthorized_client') },
      'Service accounts',
    ],
    [
      'scope of Entra ID',
      ENTRA,
      { refusal: refused(400, 'invalid_scope'), settings: { scope: 'api://a' } },
      '.default',
    ],
    [
      'audience of Auth0',
      'https://shop.eu.auth0.com/oauth/token',
      { refusal: refused(403, 'access_denied') },
      'audience',
    ],
  ])('%s', (name, url, found, remedy) => {
    expect(mistakeOf(grantCase(url, found))).toEqual({ name, remedy: expect.stringContaining(remedy) });
  });

  it('no mistake where it is just a wrong secret, or a provider that is down', () => {
    const client = { id: 'shop', secret: 'x3Jm0sQw9vLpZr7tYbNc' };
    expect(mistakeOf(grantCase(KEYCLOAK, { refusal: rejected, client }))).toBeUndefined();
    expect(mistakeOf(grantCase(KEYCLOAK, { refusal: refused(503) }))).toBeUndefined();
    // Keycloak's words.
    const description = 'Invalid client or Invalid client credentials';
    const refusal = { ...refused(401, 'unauthorized_client'), description };
    expect(mistakeOf(grantCase(KEYCLOAK, { refusal, client }))).toBeUndefined();
  });

  it('no mistake by words that the provider says beside its error', () => {
    const description = 'not unauthorized_client, nor invalid_scope: see status 404 of text/html';
    const refusal = { ...refused(400, 'invalid_target'), description };
    for (const url of [KEYCLOAK, ENTRA]) expect(mistakeOf(grantCase(url, { refusal }))).toBeUndefined();
  });

  it('what an answer says, in parts', () => {
    const json = { status: 400, contentType: 'Application/JSON; charset=utf-8' };
    const body = '{"error":"invalid_scope","error_description":"no"}';
    expect(refusalIn({ ...json, body })).toEqual({
      status: 400,
      mediaType: 'application/json',
      error: 'invalid_scope',
      description: 'no',
    });
    const page = { status: 200, contentType: 'text/html', body: '<html>invalid_client' };
    expect(refusalIn(page)).toEqual({ status: 200, mediaType: 'text/html' });
  });

  it('nothing of the secret', () => {
    for (const secret of [encoded, uuid, 'p+ss%word', 'shop']) {
      for (const url of [KEYCLOAK, ENTRA]) {
        const { remedy } =
          mistakeOf(grantCase(url, { refusal: rejected, client: { id: 'shop', secret } })) ?? {};
        if (secret !== 'shop') expect(remedy ?? '').not.toContain(secret);
      }
    }
  });
});
