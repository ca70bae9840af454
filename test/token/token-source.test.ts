import { Registry } from '@prometheus-io/client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createCredentialsMetrics } from '../../src/credentials/metrics.ts';
import type { CredentialsReading } from '../../src/token/client-credentials.ts';
import type { LiveCredentials } from '../../src/token/live-credentials.ts';
import { createTokenMetrics } from '../../src/token/metrics.ts';
import type { TokenResponse } from '../../src/token/token-response.ts';
import { openTokenSource } from '../../src/token/token-source.ts';
import { TokenUnavailable } from '../../src/token/token-unavailable.ts';
import { credentialConfig } from '../support/credential-config.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock, settle } from '../support/manual-clock.ts';

const loaded = (clientSecret: string): CredentialsReading => ({
  state: 'loaded',
  credentials: { method: 'client_secret_post', clientId: 'shop', clientSecret },
});

/** Mounted credentials in memory; the real ones have tests of their own. */
function fakeCredentials(initial: CredentialsReading) {
  let current = initial;
  const listeners = new Set<(reading: CredentialsReading) => void>();
  const credentials: LiveCredentials = {
    current: () => current,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close: () => listeners.clear(),
  };
  return {
    credentials,
    change(next: CredentialsReading) {
      current = next;
      for (const listener of listeners) listener(next);
    },
  };
}

interface PendingGrant {
  readonly secret: string;
  readonly signal: AbortSignal;
  answer(outcome: TokenResponse): Promise<void>;
}

function open(initial: CredentialsReading = loaded('one')) {
  const clock = new ManualClock();
  const { credentials, change } = fakeCredentials(initial);
  const registry = new Registry();
  const { log, lines } = captureLog();
  const grants: PendingGrant[] = [];
  const source = openTokenSource({
    config: credentialConfig({ tokenUrl: 'http://127.0.0.1/token' }),
    credentials,
    endpoint: {
      requestToken: (client, signal) =>
        new Promise((resolve) => {
          grants.push({
            secret: client.method === 'client_secret_post' ? client.clientSecret : '',
            signal,
            answer: (outcome) => {
              resolve(outcome);
              return settle();
            },
          });
        }),
      close: async () => {},
    },
    clock,
    random: () => 0,
    metrics: createTokenMetrics(registry),
    credentialsMetrics: createCredentialsMetrics(registry),
    log,
  });
  onTestFinished(() => source.close());
  return {
    source,
    clock,
    grants,
    change,
    lines,
    metrics: () => registry.metrics(),
    last: () => grants.at(-1) as PendingGrant,
  };
}

const token = (accessToken: string, lifetimeMs = 300_000): TokenResponse => ({
  result: 'success',
  accessToken,
  lifetimeMs,
});
const failure: TokenResponse = { result: 'unavailable', detail: 'ECONNREFUSED' };
const rejection: TokenResponse = { result: 'rejected', detail: 'status 401 invalid_client' };

describe('the first token', () => {
  it('is requested without being asked for, once for any number of callers', async () => {
    const { source, last, grants } = open();
    const callers = Array.from({ length: 100 }, () => source.obtain());
    expect(grants).toHaveLength(1);
    await last().answer(token('a'));
    expect(new Set(await Promise.all(callers))).toEqual(new Set(['Bearer a']));
    expect(source.current()).toBe('Bearer a');
    await source.firstToken;
  });

  it('is waited for through a failure whose retry comes soon', async () => {
    const { source, clock, last } = open();
    const caller = source.obtain();
    await last().answer(failure);
    await clock.advance(500);
    await last().answer(token('a'));
    expect(await caller).toBe('Bearer a');
  });

  it('is not waited for longer than the bound', async () => {
    const { source, clock } = open();
    const caller = source.obtain().catch((error: unknown) => error);
    await clock.advance(10_000);
    expect(await caller).toBeInstanceOf(TokenUnavailable);
  });

  it('is refused at once, with the time to come back, while the next grant is further off than the bound', async () => {
    const { source, last, grants } = open();
    await last().answer(rejection);
    const error = await source.obtain().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'token_unavailable', retryAfterSeconds: 15 });
    expect(String(error)).toContain('status 401 invalid_client');
    expect(grants).toHaveLength(1);
  });

  it('waits for credentials that are not mounted yet, and says so', async () => {
    const { source, grants, change, last } = open({
      state: 'missing',
      detail: '/secret/client_id does not exist',
    });
    const error = await source.obtain().catch((thrown: unknown) => thrown);
    expect(String(error)).toContain('/secret/client_id does not exist');
    expect(grants).toHaveLength(0);
    change(loaded('one'));
    await last().answer(token('a'));
    expect(source.current()).toBe('Bearer a');
  });
});

describe('renewal', () => {
  it('happens before the end, unseen by callers', async () => {
    const { source, clock, grants, last } = open();
    await last().answer(token('a'));
    await clock.advance(225_000);
    expect(grants).toHaveLength(2);
    expect(source.current()).toBe('Bearer a');
    await last().answer(token('b'));
    expect(source.current()).toBe('Bearer b');
  });

  it('that fails to the end leaves no token, and the next success heals it', async () => {
    const { source, clock, last } = open();
    await last().answer(token('a', 60_000));
    await clock.advance(45_000);
    await last().answer(failure);
    await clock.advance(500);
    await last().answer(rejection);
    expect(source.current()).toBe('Bearer a');
    await clock.advance(14_500);
    expect(source.current()).toBeUndefined();
    await clock.advance(15_500);
    await last().answer(token('b'));
    expect(source.current()).toBe('Bearer b');
  });

  it('follows the wall clock too: a machine that slept has no valid token, and asks within seconds', async () => {
    const { source, clock, grants, last } = open();
    await last().answer(token('a', 3_600_000));
    clock.stepWall(3_600_000);
    expect(source.current()).toBeUndefined();
    await clock.advance(15_000);
    expect(grants).toHaveLength(2);
  });
});

describe('rotation', () => {
  it('asks with the new secret at once and serves the old token until then', async () => {
    const { source, grants, change, last } = open();
    await last().answer(token('a'));
    change(loaded('two'));
    expect(grants.map(({ secret }) => secret)).toEqual(['one', 'two']);
    expect(source.current()).toBe('Bearer a');
    await last().answer(token('b'));
    expect(source.current()).toBe('Bearer b');
  });

  it('gives up the grant in flight with the old secret', async () => {
    const { source, grants, change, last } = open();
    change(loaded('two'));
    expect(grants[0]?.signal.aborted).toBe(true);
    await last().answer(token('b'));
    await grants[0]?.answer(token('a'));
    expect(source.current()).toBe('Bearer b');
  });

  it('keeps the last good credentials while the Secret cannot be used', async () => {
    const one = loaded('one');
    const { source, clock, grants, change, last } = open(one);
    await last().answer(token('a'));
    change({ state: 'missing', detail: '/secret/client_secret does not exist' });
    expect(source.snapshot().credentials).toMatchObject({ state: 'missing' });
    await clock.advance(225_000);
    expect(grants.at(-1)?.secret).toBe('one');
    change(one);
    expect(grants).toHaveLength(2);
  });
});

describe('a token that an upstream refused', () => {
  it('is replaced once for all who were refused', async () => {
    const { source, clock, grants, last } = open();
    await last().answer(token('a'));
    await clock.advance(5000);
    const callers = Array.from({ length: 10 }, () => source.replace('Bearer a'));
    expect(grants).toHaveLength(2);
    await last().answer(token('b'));
    expect(new Set(await Promise.all(callers))).toEqual(new Set(['Bearer b']));
    expect(await source.replace('Bearer a')).toBe('Bearer b');
    expect(grants).toHaveLength(2);
  });

  it('has no replacement when renewal fails, and goes on being served', async () => {
    const { source, clock, last } = open();
    await last().answer(token('a'));
    await clock.advance(5000);
    const caller = source.replace('Bearer a');
    await last().answer(failure);
    expect(await caller).toBeUndefined();
    expect(source.current()).toBe('Bearer a');
  });

  it('has none when it is younger than a second', async () => {
    const { source, grants, last } = open();
    await last().answer(token('a'));
    expect(await source.replace('Bearer a')).toBeUndefined();
    expect(grants).toHaveLength(1);
  });
});

describe('closing', () => {
  it('gives up the grant in flight, tells who waits, and leaves no timer', async () => {
    const { source, clock, grants } = open();
    const caller = source.obtain().catch((error: unknown) => error);
    await source.close();
    expect(await caller).toBeInstanceOf(TokenUnavailable);
    expect(grants[0]?.signal.aborted).toBe(true);
    expect(clock.pendingTimers).toBe(0);
    await expect(source.obtain()).rejects.toBeInstanceOf(TokenUnavailable);
  });
});

describe('what is told', () => {
  it('metrics count grants by result and reason, and gauge the token by wall time', async () => {
    const { clock, last, metrics } = open();
    await last().answer(failure);
    await clock.advance(500);
    const requestedAtSeconds = clock.now().wallMs / 1000;
    await last().answer(token('a'));
    const text = await metrics();
    expect(text).toContain(
      'token_sidecar_token_refresh_total{credential="default",result="unavailable",reason="startup"} 1',
    );
    expect(text).toContain(
      'token_sidecar_token_refresh_total{credential="default",result="success",reason="retry"} 1',
    );
    expect(text).toContain(
      `token_sidecar_token_expiry_timestamp_seconds{credential="default"} ${requestedAtSeconds + 300}`,
    );
    expect(text).toContain(
      `token_sidecar_token_renewal_timestamp_seconds{credential="default"} ${requestedAtSeconds + 225}`,
    );
    expect(text).toContain('token_sidecar_token_ready{credential="default"} 1');
    expect(text).toContain('token_sidecar_token_refresh_consecutive_failures{credential="default"} 0');
    await clock.advance(300_000);
    expect(await metrics()).toContain('token_sidecar_token_ready{credential="default"} 0');
  });

  it('no log line, metric or snapshot holds a token or a secret', async () => {
    const { source, clock, last, lines, metrics, change } = open(loaded('S3CRET'));
    await last().answer(token('T0KEN'));
    change(loaded('S3CRET-2'));
    await last().answer(rejection);
    await clock.advance(1000);
    const told = [...lines, await metrics(), JSON.stringify(source.snapshot())].join('\n');
    expect(lines.length).toBeGreaterThanOrEqual(3);
    expect(told).not.toMatch(/S3CRET|T0KEN|shop/);
  });
});
