import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { type JWTPayload, jwtVerify } from 'jose';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/platform/time/clock.ts';
import { createTokenEndpoint } from '../../../src/token/provider/token-endpoint.ts';
import { answer, ScriptedTokenEndpoint } from '../../support/scripted-token-endpoint.ts';
import { openGrant, resolveCredential } from './granting.ts';

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const pem = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }).toString();

/** Verified as a provider does, whose clock is half a minute behind. */
async function verify(
  assertion: string | null | undefined,
): Promise<JWTPayload & { kid?: string | undefined }> {
  const behind = new Date(Date.now() - 29_000);
  const { payload, protectedHeader } = await jwtVerify(assertion ?? '', rsa.publicKey, {
    currentDate: behind,
  });
  const { iat = 0, nbf = 0, exp = 0 } = payload;
  expect(nbf).toBe(iat);
  // Salesforce and GitHub bound how far off the end may be.
  expect(exp - Date.now() / 1000).toBeLessThanOrEqual(60);
  return { ...payload, kid: protectedHeader.kid };
}

/** As Salesforce documents it: no expires_in, and an exclamation mark in the token. */
const SALESFORCE = answer(
  200,
  JSON.stringify({
    access_token: '00DB0000000TfcR!AQQAQFhoK8vTMg_rKA.esrJ2bCs',
    scope: 'api',
    instance_url: 'https://example.my.salesforce.com',
    id: 'https://login.salesforce.com/id/00D/005',
    token_type: 'Bearer',
  }),
);

describe('an assertion of RFC 7523', () => {
  it('is signed for the configured subject and audience, with the client as issuer', async () => {
    const provider = await ScriptedTokenEndpoint.start(SALESFORCE);
    const { request } = await openGrant(
      {
        tokenUrl: provider.url,
        grant: 'jwt_bearer',
        jwtBearer: {
          subject: 'integration@example.com',
          audience: 'https://login.salesforce.com',
          claims: { tenant: 'a' },
        },
        scope: 'api',
      },
      { client_id: '3MVG9', private_key: pem(rsa.privateKey) },
    );
    expect(await request()).toEqual({
      result: 'success',
      accessToken: '00DB0000000TfcR!AQQAQFhoK8vTMg_rKA.esrJ2bCs',
      lifetimeMs: 300_000,
      isLifetimeAssumed: true,
    });
    const [received] = provider.received;
    const { assertion, ...form } = Object.fromEntries(received?.form ?? []);
    expect(form).toEqual({ grant_type: JWT_BEARER, scope: 'api' });
    expect(received?.authorization).toBeUndefined();
    expect(await verify(assertion)).toMatchObject({
      iss: '3MVG9',
      sub: 'integration@example.com',
      aud: 'https://login.salesforce.com',
      tenant: 'a',
      jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
  });

  it('has the client and the token endpoint as defaults, beside the client’s own authentication', async () => {
    const provider = await ScriptedTokenEndpoint.start();
    const { request } = await openGrant(
      { tokenUrl: provider.url, grant: 'jwt_bearer', clientAuth: 'client_secret_basic' },
      { client_id: 'shop', client_secret: 'x', private_key: pem(rsa.privateKey) },
    );
    expect(await request()).toMatchObject({ result: 'success' });
    expect(provider.received[0]?.authorization).toBe(`Basic ${Buffer.from('shop:x').toString('base64')}`);
    expect(await verify(provider.received[0]?.form.get('assertion'))).toMatchObject({
      iss: 'shop',
      sub: 'shop',
      aud: provider.url,
    });
  });

  it('is different each time and needs no client id if the issuer is configured', async () => {
    const provider = await ScriptedTokenEndpoint.start();
    const { request } = await openGrant(
      { tokenUrl: provider.url, grant: 'jwt_bearer', jwtBearer: { issuer: 'me', keyId: 'k1' } },
      { private_key: pem(rsa.privateKey) },
    );
    await request();
    await request();
    const [first, second] = provider.received.map(({ form }) => form.get('assertion'));
    expect(first).not.toBe(second);
    expect(await verify(first)).toMatchObject({ iss: 'me', kid: 'k1' });
  });

  it('is not made with an invalid key, which is not quoted', async () => {
    const { read } = await openGrant(
      { tokenUrl: 'https://sso/token', grant: 'jwt_bearer' },
      { client_id: 'a', private_key: 'S3CRET' },
    );
    const reading = await read();
    expect(reading).toMatchObject({
      state: 'malformed',
      detail: expect.stringContaining('private_key is not'),
    });
    expect(JSON.stringify(reading)).not.toContain('S3CRET');
  });
});

describe('a Google service account', () => {
  const keyFile = (fields: Record<string, unknown> = {}) =>
    JSON.stringify({
      type: 'service_account',
      project_id: 'example',
      private_key_id: 'k1',
      private_key: pem(rsa.privateKey),
      client_email: 'shop@example.iam.gserviceaccount.com',
      token_uri: 'http://127.0.0.1:1/stolen',
      ...fields,
    });
  const settings = {
    grant: 'jwt_bearer',
    jwtBearer: { kind: 'google_service_account' },
    scope: 'https://www.googleapis.com/auth/cloud-platform',
  };

  it('puts the scope into the assertion and uses the configured endpoint', async () => {
    const provider = await ScriptedTokenEndpoint.start(
      answer(200, JSON.stringify({ access_token: 'ya29.c.b0A...', expires_in: 3599, token_type: 'Bearer' })),
    );
    const { request } = await openGrant({ ...settings, tokenUrl: provider.url }, { 'key.json': keyFile() });
    expect(await request()).toEqual({
      result: 'success',
      accessToken: 'ya29.c.b0A...',
      lifetimeMs: 3_599_000,
    });
    const { assertion, ...form } = Object.fromEntries(provider.received[0]?.form ?? []);
    expect(form).toEqual({ grant_type: JWT_BEARER });
    const payload = await verify(assertion);
    expect(payload).toMatchObject({
      iss: 'shop@example.iam.gserviceaccount.com',
      aud: provider.url,
      scope: settings.scope,
      kid: 'k1',
    });
    expect(payload).not.toHaveProperty('sub');
  });

  it('may act for a user of its domain', async () => {
    const provider = await ScriptedTokenEndpoint.start();
    const jwtBearer = { kind: 'google_service_account', subject: 'a@example.com', keyFile: 'sa.json' };
    const { request } = await openGrant(
      { ...settings, jwtBearer, tokenUrl: provider.url },
      { 'sa.json': keyFile() },
    );
    await request();
    expect(await verify(provider.received[0]?.form.get('assertion'))).toMatchObject({ sub: 'a@example.com' });
  });

  it('is requested from Google by default', async () => {
    expect(await resolveCredential(settings)).toMatchObject({
      tokenUrl: 'https://oauth2.googleapis.com/token',
      clientAuth: { method: 'none' },
    });
  });

  it.each([
    ['what is no JSON', 'S3CRET'],
    ['a key file of a user', keyFile({ type: 'authorized_user' })],
    ['one without an address', keyFile({ client_email: undefined })],
    ['one with an empty address', keyFile({ client_email: '' })],
    ['one without a key', keyFile({ private_key: 'S3CRET' })],
    [
      'one with a key of another kind',
      keyFile({ private_key: pem(generateKeyPairSync('ed25519').privateKey) }),
    ],
  ])('needs a key file, and refuses %s', async (_name, content) => {
    const { read } = await openGrant(settings, { 'key.json': content });
    const reading = await read();
    expect(reading).toMatchObject({
      state: 'malformed',
      detail: expect.stringMatching(/key.json is not a key file of a Google service account/),
    });
    expect(JSON.stringify(reading)).not.toMatch(/S3CRET|PRIVATE/);
  });
});

describe('the credentials of another grant', () => {
  const file = JSON.stringify({
    type: 'service_account',
    private_key: pem(rsa.privateKey),
    client_email: 'shop@example.iam.gserviceaccount.com',
  });
  const kinds = ['rfc7523', 'google_service_account', 'github_app'];
  it.each(kinds.flatMap((kind) => kinds.filter((other) => other !== kind).map((other) => [kind, other])))(
    '%s with the credentials of %s signs nothing and sends no request',
    async (kind, other) => {
      const provider = await ScriptedTokenEndpoint.start();
      const settings = (of: string | undefined) => ({
        tokenUrl: provider.url,
        grant: 'jwt_bearer',
        jwtBearer: { kind: of, keyFile: of === 'google_service_account' ? 'key.json' : 'private_key' },
        ...(of === 'google_service_account' ? { scope: 'read' } : {}),
      });
      const files = { client_id: 'shop', private_key: pem(rsa.privateKey), 'key.json': file };
      const reading = await (await openGrant(settings(other), files)).read();
      if (reading.state !== 'loaded') throw new Error(reading.detail);
      const endpoint = createTokenEndpoint(await resolveCredential(settings(kind)), systemClock);
      onTestFinished(() => endpoint.close());
      const outcome = await endpoint.requestToken(reading.credentials, new AbortController().signal);
      expect(outcome).toMatchObject({ result: 'unavailable' });
      expect(provider.received).toEqual([]);
    },
  );
});

describe('an installation of a GitHub App', () => {
  const settings = (tokenUrl: string, jwtBearer: Record<string, unknown> = {}) => ({
    tokenUrl,
    grant: 'jwt_bearer',
    jwtBearer: { kind: 'github_app', ...jwtBearer },
  });
  const files = { client_id: 'Iv23liExample', private_key: pem(rsa.privateKey) };

  it('sends a JWT of the app, and the token lives as long as the answer says', async () => {
    const expiresAt = new Date(Math.floor(Date.now() / 1000 + 3600) * 1000).toISOString().replace('.000', '');
    const seen: (string | undefined)[] = [];
    const bodies: string[] = [];
    const provider = await ScriptedTokenEndpoint.start((response, request) => {
      seen.push(request.headers.accept, request.headers['content-type']);
      response.writeHead(201, { 'content-type': 'application/json; charset=utf-8' });
      response.end(
        JSON.stringify({
          token: 'ghs_16C7e42F292c6912E7710c838347Ae178B4a',
          expires_at: expiresAt,
          permissions: { contents: 'read' },
          repository_selection: 'selected',
        }),
      );
    });
    const { request } = await openGrant(
      settings(provider.url, { repositories: ['shop'], permissions: { contents: 'read' } }),
      files,
    );
    const outcome = await request();
    expect(outcome).toMatchObject({
      result: 'success',
      accessToken: 'ghs_16C7e42F292c6912E7710c838347Ae178B4a',
    });
    const { lifetimeMs } = outcome as { lifetimeMs: number };
    expect(lifetimeMs).toBeGreaterThan(3_590_000);
    expect(lifetimeMs).toBeLessThanOrEqual(3_600_000);
    expect(seen).toEqual(['application/vnd.github+json', 'application/json']);
    const [received] = provider.received;
    bodies.push([...(received?.form.keys() ?? [])].join());
    expect(JSON.parse(bodies[0] ?? '')).toEqual({
      repositories: ['shop'],
      permissions: { contents: 'read' },
    });
    expect(await verify(received?.authorization?.replace('Bearer ', ''))).toMatchObject({
      iss: 'Iv23liExample',
    });
  });

  it('is refused with GitHub’s message', async () => {
    const refusal = JSON.stringify({
      message: 'A JSON web token could not be decoded',
      documentation_url: 'https://docs.github.com/rest',
      status: '401',
    });
    const provider = await ScriptedTokenEndpoint.start(answer(401, refusal));
    const { request } = await openGrant(settings(provider.url, { issuer: '12345' }), {
      private_key: pem(rsa.privateKey),
    });
    expect(await request()).toMatchObject({
      result: 'rejected',
      detail: 'status 401 github: A JSON web token could not be decoded',
    });
  });

  it.each([
    ['{}', 'access_token is missing'],
    [JSON.stringify({ token: 'a b', expires_at: 'soon' }), 'access_token has a character'],
  ])('has no token if the answer is %s', async (body, detail) => {
    const provider = await ScriptedTokenEndpoint.start(answer(201, body));
    const { request } = await openGrant(settings(provider.url), files);
    expect(await request()).toEqual({ result: 'invalid_response', detail: expect.stringContaining(detail) });
  });
});
