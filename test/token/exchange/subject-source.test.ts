import { Registry } from '@prometheus-io/client';
import { decodeJwt } from 'jose';
import { expect, it, onTestFinished } from 'vitest';
import type { CredentialConfig } from '../../../src/config/config.ts';
import { createCredentialsMetrics } from '../../../src/platform/mounted/metrics.ts';
import { systemClock } from '../../../src/platform/time/clock.ts';
import type { Authorization } from '../../../src/token/bearer-source.ts';
import { openLiveCredentials } from '../../../src/token/credentials.ts';
import { tokenHash } from '../../../src/token/dpop/proof.ts';
import { openSubjectSource } from '../../../src/token/exchange/subject-source.ts';
import { createTokenMetrics } from '../../../src/token/metrics.ts';
import { createTokenEndpoint } from '../../../src/token/provider/token-endpoint.ts';
import { credentialConfig } from '../../support/credential-config.ts';
import { mountSecret } from '../../support/kubelet-secret.ts';
import { captureLog } from '../../support/log-capture.ts';
import { answer, ScriptedTokenEndpoint } from '../../support/scripted-token-endpoint.ts';

const FILES = { client_id: 'shop', client_secret: 's3cret' };
const INVALID_CLIENT = answer(401, JSON.stringify({ error: 'invalid_client' }));
const INVALID_SUBJECT = answer(400, JSON.stringify({ error: 'invalid_grant' }));

/** Mounted files, a provider that grants `for-SUBJECT` until the test says otherwise, and the source between them. */
async function open(
  files: Readonly<Record<string, string>> = FILES,
  required?: false,
  dpop?: CredentialConfig['dpop'],
) {
  const provider = await ScriptedTokenEndpoint.start((response, request) => {
    const subject = provider.received.at(-1)?.form.get('subject_token');
    const tokenType = request.headers['dpop'] === undefined ? 'Bearer' : 'DPoP';
    const granted = { access_token: `for-${subject}`, token_type: tokenType, expires_in: 300 };
    answer(200, JSON.stringify(granted))(response, request);
  });
  const secret = await mountSecret(files);
  const config = credentialConfig({
    tokenUrl: provider.url,
    directory: secret.directory,
    grant: { type: 'token_exchange', subjectTokenType: 'urn:ietf:params:oauth:token-type:access_token' },
    ...(required === undefined ? {} : { required }),
    ...(dpop === undefined ? {} : { dpop }),
  });
  const credentials = await openLiveCredentials(config, { clock: systemClock, pollMs: 50 });
  const registry = new Registry();
  const { log, lines } = captureLog();
  const source = openSubjectSource({
    config,
    credentials,
    endpoint: createTokenEndpoint(config, systemClock),
    clock: systemClock,
    metrics: createTokenMetrics(registry),
    credentialsMetrics: createCredentialsMetrics(registry),
    log,
  });
  onTestFinished(() => source.close());
  return {
    provider,
    secret,
    source,
    lines,
    metrics: () => registry.metrics(),
    async ask(subject: string): Promise<Authorization> {
      const own = source.forUpstream('api').bySubject?.(subject);
      if (own === undefined) throw new Error('tokens are the same for all');
      return await own.obtain();
    },
  };
}

it('a token exchange uses the request’s token as subject, authenticates the client, and keeps no token without a subject', async () => {
  const { provider, source, ask, lines } = await open();
  expect(await ask('ann')).toBe('Bearer for-ann');
  const [received] = provider.received;
  expect(received?.authorization).toBe(`Basic ${Buffer.from('shop:s3cret').toString('base64')}`);
  expect(received?.form.get('subject_token')).toBe('ann');
  const bearer = source.forUpstream('api');
  expect([bearer.current(), source.held(), source.renew()]).toEqual([undefined, undefined, 'impossible']);
  expect(await bearer.replace('Bearer for-ann')).toBeUndefined();
  await expect(bearer.obtain()).rejects.toMatchObject({ code: 'token_unavailable' });
  expect(provider.received).toHaveLength(1);
  expect(lines.join('')).not.toContain('for-ann');
});

it('exchanged tokens are bound to one key, and the proof of each is for that token', async () => {
  const { ask, source } = await open(FILES, undefined, { allowsBearer: false });
  const [ann, bob] = [await ask('ann'), await ask('bob')];
  if (typeof ann !== 'object' || typeof bob !== 'object') throw new Error('a token is bound to no key');
  expect([ann.value, bob.value]).toEqual(['DPoP for-ann', 'DPoP for-bob']);
  expect(ann.thumbprint).toBe(bob.thumbprint);
  expect(await ask('ann')).toBe(ann);
  const request = { method: 'GET', origin: 'https://api.test', path: '/' };
  const hashes = [ann, bob].map((token) => decodeJwt(token.prove(request))['ath']);
  expect(hashes).toEqual(['for-ann', 'for-bob'].map(tokenHash));
  expect(source.snapshot().proofs?.made).toBe(4);
});

it('a token exchange is ready once its credentials are usable, and sends no request before', async () => {
  const { provider, secret, source, ask, metrics } = await open({ client_id: 'shop' });
  expect(source.snapshot()).toMatchObject({
    ready: false,
    obtainedFirstToken: false,
    credentials: { state: 'missing', detail: expect.stringContaining('client_secret does not exist') },
  });
  await expect(ask('ann')).rejects.toMatchObject({
    code: 'token_unavailable',
    message: expect.stringMatching(/the mounted credentials cannot be used: .*client_secret does not exist/),
  });
  expect(provider.received).toEqual([]);
  expect(await metrics()).toContain('token_sidecar_token_ready{credential="default"} 0');

  await secret.update(FILES);
  await source.firstToken;
  expect(source.snapshot()).toMatchObject({ ready: true, credentials: { state: 'loaded' } });
  // What failed for want of credentials is found out anew.
  expect(await ask('ann')).toBe('Bearer for-ann');
  const text = await metrics();
  expect(text).toContain('token_sidecar_token_ready{credential="default"} 1');
  expect(text).toContain('token_sidecar_credentials_reload_total{credential="default",result="success"} 1');
});

it('unusable credentials are counted, and the last good ones stay in use', async () => {
  const { secret, source, ask, metrics } = await open();
  await secret.update({ client_id: 'shop' });
  await expect.poll(() => source.snapshot().credentials.state).toBe('missing');
  expect(source.snapshot().ready).toBe(true);
  expect(await ask('ann')).toBe('Bearer for-ann');
  expect(await metrics()).toContain(
    'token_sidecar_credentials_reload_total{credential="default",result="missing"} 1',
  );
});

it('the last failure, and whether it affects all callers, is reported until a token is granted', async () => {
  const { provider, secret, source, ask, metrics } = await open();
  const grants = provider.script;
  expect(source.snapshot()).toMatchObject({
    tokens: { kind: 'exchanged', refusesAll: false },
    consecutiveFailures: 0,
    lastFailure: undefined,
  });
  provider.script = INVALID_CLIENT;
  const before = Date.now();
  await expect(ask('ann')).rejects.toMatchObject({ code: 'token_unavailable' });
  expect(source.snapshot().tokens).toEqual({ kind: 'exchanged', refusesAll: false });
  await expect(ask('bob')).rejects.toMatchObject({ code: 'token_unavailable' });
  const { tokens, consecutiveFailures, lastFailure, ready } = source.snapshot();
  expect({ tokens, consecutiveFailures, ready }).toEqual({
    tokens: { kind: 'exchanged', refusesAll: true },
    consecutiveFailures: 2,
    ready: true,
  });
  expect(lastFailure).toMatchObject({
    result: 'rejected',
    detail: expect.stringContaining('invalid_client'),
  });
  expect(lastFailure?.at.wallMs).toBeGreaterThanOrEqual(before);
  expect(await metrics()).toContain(
    'token_sidecar_token_refresh_consecutive_failures{credential="default"} 2',
  );

  provider.script = grants;
  await secret.update({ ...FILES, client_secret: 'another' });
  await expect.poll(() => ask('ann').catch(() => undefined)).toBe('Bearer for-ann');
  expect(source.snapshot()).toMatchObject({
    tokens: { kind: 'exchanged', refusesAll: false },
    consecutiveFailures: 0,
    lastFailure: undefined,
  });
});

it('the state of a credential is not affected by a refused subject, which any caller may send', async () => {
  const { provider, source, ask, metrics } = await open();
  provider.script = INVALID_SUBJECT;
  await expect(ask('eve')).rejects.toMatchObject({ code: 'subject_token_refused' });
  expect(source.snapshot()).toMatchObject({
    tokens: { kind: 'exchanged', refusesAll: false },
    consecutiveFailures: 0,
    lastFailure: undefined,
  });
  expect(await metrics()).not.toContain('result="rejected"');
  expect(source.grants().latest).toEqual([]);
});

it('when the provider returns the same token until its expiry, the next one is awaited', async () => {
  const { provider, ask, metrics } = await open();
  const lives = [2, 1, 0];
  provider.script = (response, request) => {
    const expires_in = lives.shift();
    const fields =
      expires_in === undefined
        ? { access_token: 'second', expires_in: 300 }
        : { access_token: 'first', expires_in };
    answer(200, JSON.stringify({ token_type: 'Bearer', ...fields }))(response, request);
  };
  await expect.poll(() => ask('ann'), { timeout: 10_000 }).toBe('Bearer second');
  expect(provider.received).toHaveLength(4);
  expect(await metrics()).not.toContain('result="invalid_response"');
});

it('it is known that an exchange is under way', async () => {
  const { provider, source, ask } = await open();
  const grants = provider.script;
  const held = Promise.withResolvers<void>();
  provider.script = (response, request) => void held.promise.then(() => grants(response, request));
  expect(source.snapshot().grantInFlight).toBe(false);
  const asked = ask('ann');
  await provider.requests(1);
  expect(source.snapshot().grantInFlight).toBe(true);
  held.resolve();
  await asked;
  expect(source.snapshot().grantInFlight).toBe(false);
});

it.each([
  [undefined, true],
  [false, false],
] as const)(
  'the start waits for the credential unless configured otherwise: required %s',
  async (required, isRequired) => {
    const { source, metrics } = await open(FILES, required);
    expect(source.snapshot().required).toBe(isRequired);
    expect(await metrics()).toContain(
      `token_sidecar_credential_required{credential="default"} ${isRequired ? 1 : 0}`,
    );
  },
);

it('closing aborts the exchange under way', async () => {
  const { provider, source, ask } = await open();
  provider.script = () => {};
  const asked = ask('ann');
  const refused = expect(asked).rejects.toMatchObject({ code: 'token_unavailable' });
  await provider.requests(1);
  await source.close();
  await refused;
});
