import { describe, expect, it, onTestFinished } from 'vitest';
import { createCredentialsMetrics } from '../../../src/platform/mounted/metrics.ts';
import { Registry } from '../../../src/platform/prometheus.ts';
import { systemClock } from '../../../src/platform/time/clock.ts';
import { openLiveCredentials } from '../../../src/token/credentials.ts';
import { createTokenMetrics } from '../../../src/token/metrics.ts';
import { createTokenEndpoint } from '../../../src/token/provider/token-endpoint.ts';
import { openTokenSource } from '../../../src/token/token-source.ts';
import { mountSecret } from '../../support/kubelet-secret.ts';
import { captureLog } from '../../support/log-capture.ts';
import { openGrant, resolveCredential } from './granting.ts';

const SETTINGS = { grant: 'static' };

const jwt = (claims: object) => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.c2ln`;

async function openStatic(files: Record<string, string>) {
  const secret = await mountSecret(files);
  const config = await resolveCredential({ ...SETTINGS, dir: secret.directory });
  const registry = new Registry();
  const { log, lines } = captureLog();
  const source = openTokenSource({
    config,
    credentials: await openLiveCredentials(config, { clock: systemClock, pollMs: 60_000 }),
    endpoint: createTokenEndpoint(config, systemClock),
    clock: systemClock,
    random: () => 0,
    metrics: createTokenMetrics(registry),
    credentialsMetrics: createCredentialsMetrics(registry),
    log,
  });
  onTestFinished(() => source.close());
  return { source, secret, lines, metrics: () => registry.metrics() };
}

describe('a mounted static token', () => {
  it('is replaced when the file changes, and stays in use while the file is missing', async () => {
    const { source, secret } = await openStatic({ token: 'key-1\n' });
    expect(await source.obtain()).toBe('Bearer key-1');
    await secret.update({ token: 'key-2' });
    await expect.poll(() => source.current()).toBe('Bearer key-2');
    await secret.update({ other: 'x' });
    await expect.poll(() => source.snapshot().credentials.state).toBe('missing');
    expect(source.current()).toBe('Bearer key-2');
  });

  it('without an expiry is reported without one', async () => {
    const { source, metrics, lines } = await openStatic({ token: 'key-1' });
    await source.obtain();
    expect(source.snapshot()).toMatchObject({
      ready: true,
      tokenUrl: undefined,
      expiresAtMs: undefined,
      renewalAtMs: undefined,
      grantInFlight: false,
    });
    const text = await metrics();
    expect(text).toMatch(/^token_sidecar_token_ready\{credential="default"\} 1$/m);
    expect(text).not.toMatch(/^token_sidecar_token_(expiry|renewal)_timestamp_seconds\{/m);
    expect(text + lines.join()).not.toContain('key-1');
  });

  it('is not replayed after a refusal unless it was replaced meanwhile', async () => {
    const { source, secret } = await openStatic({ token: 'key-1' });
    const api = source.forUpstream('api');
    await source.obtain();
    // So that its refusal is a reason to ask for another.
    api.accepted('Bearer key-1');
    expect(await api.replace('Bearer key-1')).toBeUndefined();
    await secret.update({ token: 'key-2' });
    await expect.poll(() => source.current()).toBe('Bearer key-2');
    expect(await api.replace('Bearer key-1')).toBe('Bearer key-2');
  });

  it('with an expiry is not sent afterwards', async () => {
    const now = Math.floor(Date.now() / 1000);
    const { request, secret } = await openGrant(SETTINGS, { token: jwt({ exp: now + 600 }) });
    const outcome = await request();
    expect(outcome).toMatchObject({ result: 'success' });
    expect((outcome as { lifetimeMs: number }).lifetimeMs).toBeLessThanOrEqual(600_000);
    await secret.update({ token: jwt({ exp: now - 1 }) });
    expect(await request()).toEqual({ result: 'invalid_response', detail: 'its exp is past' });
  });

  it.each([
    ['two lines', 'S3CRET\nmore'],
    ['a space', 'S3CRET more'],
    ['beyond ASCII', 'S3CRETä'],
  ])('must be one line of visible ASCII, not %s', async (_name, token) => {
    const { read } = await openGrant(SETTINGS, { token });
    const reading = await read();
    expect(reading).toMatchObject({
      state: 'malformed',
      detail: expect.stringContaining('token is not a token'),
    });
    expect(JSON.stringify(reading)).not.toContain('S3CRET');
  });
});
