import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../src/platform/problems.ts';
import { resolveCredential } from '../token/grants/granting.ts';

async function problemsOf(settings: Record<string, unknown>): Promise<string[]> {
  const error = await resolveCredential(settings).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ConfigurationError);
  return (error as ConfigurationError).message.split('\n').map((line) => line.replace('credentials[0].', ''));
}

const tokenUrl = 'https://sso.example.com/token';

describe('grant', () => {
  it.each([
    [{}, undefined, 'client_secret_basic'],
    [{ grant: 'client_credentials' }, undefined, 'client_secret_basic'],
    [
      { grant: 'jwt_bearer' },
      { type: 'jwt_bearer', kind: 'rfc7523', keyFile: 'private_key', claims: {} },
      'none',
    ],
    [
      {
        grant: 'jwt_bearer',
        clientAuth: 'client_secret_post',
        jwtBearer: { keyFile: 'a', issuer: 'b', subject: 'c', audience: 'd', keyId: 'e', algorithm: 'PS256' },
      },
      {
        type: 'jwt_bearer',
        kind: 'rfc7523',
        keyFile: 'a',
        issuer: 'b',
        subject: 'c',
        audience: 'd',
        keyId: 'e',
        algorithm: 'PS256',
        claims: {},
      },
      'client_secret_post',
    ],
    [
      { grant: 'jwt_bearer', jwtBearer: { kind: 'google_service_account' }, scope: 'a' },
      { type: 'jwt_bearer', kind: 'google_service_account', keyFile: 'key.json' },
      'none',
    ],
    [
      { grant: 'jwt_bearer', jwtBearer: { kind: 'github_app', issuer: '1', repositories: ['a'] } },
      { type: 'jwt_bearer', kind: 'github_app', keyFile: 'private_key', issuer: '1', repositories: ['a'] },
      'none',
    ],
    [
      { grant: 'token_exchange' },
      {
        type: 'token_exchange',
        subjectTokenFile: 'subject_token',
        subjectTokenType: 'urn:ietf:params:oauth:token-type:jwt',
      },
      'client_secret_basic',
    ],
  ])('%j', async (settings, grant, method) => {
    const credential = await resolveCredential({ tokenUrl, ...settings });
    expect(credential.grant).toEqual(grant);
    expect(credential.clientAuth.method).toBe(method);
  });

  it('static needs no provider', async () => {
    const credential = await resolveCredential({ grant: 'static' });
    expect(credential).toMatchObject({
      grant: { type: 'static', tokenFile: 'token' },
      clientAuth: { method: 'none' },
    });
    expect(credential).not.toHaveProperty('tokenUrl');
    expect(await resolveCredential({ grant: 'static', static: { tokenFile: 'api_key' } })).toMatchObject({
      grant: { tokenFile: 'api_key' },
    });
  });
});

describe('what does not fit together is refused', () => {
  const github = { tokenUrl, grant: 'jwt_bearer', jwtBearer: { kind: 'github_app' } };

  it.each<[Record<string, unknown>, string[]]>([
    [
      { tokenUrl, grant: 'refresh_token' },
      ['grant: "refresh_token": expected one of client_credentials, jwt_bearer, token_exchange, static'],
    ],
    [{ tokenUrl, clientAuth: 'none' }, ['clientAuth: "none": expected a method that proves the client']],
    [
      { tokenUrl, jwtBearer: {}, tokenExchange: {}, static: {} },
      [
        'jwtBearer: expected nothing with grant client_credentials: it belongs to jwt_bearer',
        'tokenExchange: expected nothing with grant client_credentials: it belongs to token_exchange',
        'static: expected nothing with grant client_credentials: it belongs to static',
      ],
    ],
    [
      { grant: 'static', tokenUrl, scope: 'a', clientAuth: 'none' },
      [
        'tokenUrl: expected nothing with grant static',
        'clientAuth: expected nothing',
        'scope: expected nothing',
      ],
    ],
    [
      { ...github, clientAuth: 'client_secret_post' },
      ['clientAuth: "client_secret_post": expected none with jwtBearer.kind github_app'],
    ],
    [{ ...github, scope: 'a' }, ['scope: expected nothing with jwtBearer.kind github_app']],
    [
      { ...github, jwtBearer: { kind: 'github_app', subject: 'a', claims: {} } },
      [
        'jwtBearer.subject: expected nothing with kind github_app: it belongs to rfc7523 and google_service_account',
        'jwtBearer.claims: expected nothing with kind github_app: it belongs to rfc7523',
      ],
    ],
    [
      { grant: 'jwt_bearer', jwtBearer: { kind: 'google_service_account' } },
      ['scope: expected scopes, by spaces, such as https://www.googleapis.com/auth/cloud-platform'],
    ],
    [
      { tokenUrl, grant: 'jwt_bearer', jwtBearer: { claims: { exp: '1', a: 'b' } } },
      ['jwtBearer.claims.exp: expected a claim that is not made by the sidecar itself'],
    ],
    [
      { tokenUrl, grant: 'jwt_bearer', jwtBearer: { keyFile: '../a' } },
      ['jwtBearer.keyFile: "../a": expected a file name in dir'],
    ],
    [
      { tokenUrl, grant: 'token_exchange', tokenExchange: { actorTokenType: 'jwt' } },
      ['tokenExchange.actorTokenType: "jwt": expected nothing without actorTokenFile'],
    ],
    [
      { tokenUrl, grant: 'token_exchange', tokenExchange: { subjectTokenType: 'id' } },
      [
        'tokenExchange.subjectTokenType: "id": expected access_token, id_token, refresh_token, jwt, saml1, saml2 or a URI',
      ],
    ],
    [
      { tokenUrl, parameters: { subject_token: 'a' } },
      ['parameters.subject_token: expected a parameter that has no setting of its own'],
    ],
    [{ grant: 'jwt_bearer' }, ['authUrl: expected the URL of the identity provider']],
  ])('%j', async (settings, expected) => {
    expect(await problemsOf(settings)).toEqual(expected.map((start) => expect.stringContaining(start)));
  });
});
