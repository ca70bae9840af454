import { describe, expect, it } from 'vitest';
import { exchangesForRequests } from '../../../src/token/grants/grants.ts';
import { answerToken, ScriptedTokenEndpoint } from '../../support/scripted-token-endpoint.ts';
import { openGrant, resolveCredential } from './granting.ts';

const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
const TYPE = 'urn:ietf:params:oauth:token-type:';

describe('a token exchange', () => {
  it('sends the mounted token as the subject, read at that moment', async () => {
    const provider = await ScriptedTokenEndpoint.start(
      answerToken({ issued_token_type: `${TYPE}access_token` }),
    );
    const { request, secret } = await openGrant(
      { tokenUrl: provider.url, grant: 'token_exchange', audience: 'api', scope: 'read' },
      { client_id: 'shop', client_secret: 'x', subject_token: 'a.b.c' },
    );
    expect(await request()).toMatchObject({ result: 'success', accessToken: 'token-1' });
    await secret.update({ client_id: 'shop', client_secret: 'x', subject_token: 'd.e.f' });
    await request();
    const [first, second] = provider.received;
    expect(first?.authorization).toBe(`Basic ${Buffer.from('shop:x').toString('base64')}`);
    expect(Object.fromEntries(first?.form ?? [])).toEqual({
      grant_type: GRANT,
      subject_token: 'a.b.c',
      subject_token_type: `${TYPE}jwt`,
      scope: 'read',
      audience: 'api',
    });
    expect(second?.form.get('subject_token')).toBe('d.e.f');
  });

  it('sends the types, the actor and the requested audience and scope', async () => {
    const provider = await ScriptedTokenEndpoint.start();
    const { request } = await openGrant(
      {
        tokenUrl: provider.url,
        grant: 'token_exchange',
        clientAuth: 'none',
        tokenExchange: {
          subjectTokenFile: 'user',
          subjectTokenType: 'access_token',
          actorTokenFile: 'pod',
          actorTokenType: 'urn:example:own',
          requestedTokenType: 'jwt',
        },
      },
      { user: 'opaque!', pod: 'a.b.c' },
    );
    await request();
    expect(provider.received[0]?.authorization).toBeUndefined();
    expect(Object.fromEntries(provider.received[0]?.form ?? [])).toEqual({
      grant_type: GRANT,
      subject_token: 'opaque!',
      subject_token_type: `${TYPE}access_token`,
      actor_token: 'a.b.c',
      actor_token_type: 'urn:example:own',
      requested_token_type: `${TYPE}jwt`,
    });
  });

  it('does not keep the subject token, whose change causes no grant', async () => {
    const { read, secret } = await openGrant(
      { tokenUrl: 'https://sso/token', grant: 'token_exchange', clientAuth: 'none' },
      { subject_token: 'a.b.c' },
    );
    const before = await read();
    await secret.update({ subject_token: 'd.e.f' });
    expect(await read()).toEqual(before);
    expect(JSON.stringify(before)).not.toContain('a.b.c');
  });

  it.each([
    ['without its file', {}, /subject_token does not exist/],
    ['with an empty one', { subject_token: '' }, /subject_token is empty/],
    ['with what is no token', { subject_token: 'S3CRET and more' }, /subject_token is not a token: one line/],
  ])('with %s sends no request', async (_name, files, detail) => {
    const provider = await ScriptedTokenEndpoint.start();
    const { read, request, secret } = await openGrant(
      { tokenUrl: provider.url, grant: 'token_exchange', clientAuth: 'none' },
      { other: 'x', ...files },
    );
    const reading = await read();
    expect(reading).toMatchObject({ detail: expect.stringMatching(detail) });
    expect(JSON.stringify(reading)).not.toContain('S3CRET');
    await expect(request()).rejects.toThrow(detail);
    await secret.update({ subject_token: 'a.b.c' });
    expect(await request()).toMatchObject({ result: 'success' });
    expect(provider.received).toHaveLength(1);
  });

  it('sends no request if the subject token disappeared after the credentials were read', async () => {
    const provider = await ScriptedTokenEndpoint.start();
    const { request, secret } = await openGrant(
      { tokenUrl: provider.url, grant: 'token_exchange', clientAuth: 'none' },
      { subject_token: 'a.b.c' },
    );
    const outcome = await request(() => secret.update({ other: 'x' }));
    expect(outcome).toEqual({
      result: 'unavailable',
      detail: `${secret.directory}/subject_token does not exist`,
    });
    expect(provider.received).toEqual([]);
  });

  it('sends no request if the actor token became invalid after the credentials were read', async () => {
    const provider = await ScriptedTokenEndpoint.start();
    const { request, secret } = await openGrant(
      {
        tokenUrl: provider.url,
        grant: 'token_exchange',
        clientAuth: 'none',
        tokenExchange: { actorTokenFile: 'pod' },
      },
      { subject_token: 'a.b.c', pod: 'd.e.f' },
    );
    const outcome = await request(() => secret.update({ subject_token: 'a.b.c', pod: 'S3CRET and more' }));
    expect(outcome).toMatchObject({ detail: expect.stringMatching(/pod is not a token: one line/) });
    expect(JSON.stringify(outcome)).not.toContain('S3CRET');
    expect(provider.received).toEqual([]);
  });
});

describe('the subject of a token exchange', () => {
  it.each([
    [
      'a request’s, where it is said',
      { grant: 'token_exchange', tokenExchange: { subjectTokenFrom: 'request' } },
      true,
    ],
    ['the mounted one', { grant: 'token_exchange' }, false],
    ['nobody’s, by another grant', { grant: 'jwt_bearer' }, false],
    ['nobody’s, by a client', {}, false],
  ])('%s', async (_name, settings, isOfRequests) => {
    const config = await resolveCredential({ tokenUrl: 'https://sso/token', ...settings });
    expect(exchangesForRequests(config)).toBe(isOfRequests);
  });
});
