import { Registry } from '@prometheus-io/client';
import { onTestFinished } from 'vitest';
import type { WatchMode } from '../../src/platform/mounted/directory-watch.ts';
import { createCredentialsMetrics } from '../../src/platform/mounted/metrics.ts';
import type { CredentialsResult, LiveCredentials } from '../../src/token/credentials.ts';
import type { GrantTracer } from '../../src/token/grant-report.ts';
import { createTokenMetrics } from '../../src/token/metrics.ts';
import type { TokenResponse } from '../../src/token/provider/token-response.ts';
import type { SharedTokens } from '../../src/token/shared-tokens.ts';
import { openTokenSource } from '../../src/token/token-source.ts';
import { credentialConfig } from '../support/credential-config.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock, settle } from '../support/manual-clock.ts';

export const loaded = (clientSecret: string): CredentialsResult => ({
  state: 'loaded',
  credentials: { method: 'client_secret_post', clientId: 'shop', clientSecret },
});

/** Mounted credentials in memory; the real ones have tests of their own. */
function fakeCredentials(initial: CredentialsResult, initialMode: WatchMode) {
  let current = initial;
  const listeners = new Set<(reading: CredentialsResult) => void>();
  const rewriteListeners = new Set<() => void>();
  const modeListeners = new Set<(mode: WatchMode) => void>();
  let mode = initialMode;
  let found = initial;
  let looking: Promise<void> | undefined;

  function change(next: CredentialsResult): void {
    current = next;
    found = next;
    for (const listener of listeners) listener(next);
  }

  const credentials: LiveCredentials = {
    current: () => current,
    async refresh() {
      await looking;
      if (found !== current) change(found);
    },
    watchMode: () => mode,
    onWatchMode(listener) {
      modeListeners.add(listener);
      return () => modeListeners.delete(listener);
    },
    onRewrite(listener) {
      rewriteListeners.add(listener);
      return () => rewriteListeners.delete(listener);
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close: () => listeners.clear(),
  };
  return {
    credentials,
    change,
    /** No notification comes: it is found by whoever looks. */
    changeUnnoticed(next: CredentialsResult) {
      found = next;
    },
    changeMode(next: WatchMode) {
      mode = next;
      for (const listener of modeListeners) listener(next);
    },
    rewrite() {
      for (const listener of rewriteListeners) listener();
    },
    /** From now on a look does not end before the returned function is called. */
    hangLooks(): () => void {
      const { promise, resolve } = Promise.withResolvers<void>();
      looking = promise;
      return resolve;
    },
  };
}

interface PendingGrant {
  readonly secret: string;
  /** The token that the endpoint is told of as refused by an upstream. */
  readonly refused: string | undefined;
  /** The token that the endpoint is told of as about to end. */
  readonly ending: string | undefined;
  readonly signal: AbortSignal;
  answer(outcome: TokenResponse): Promise<void>;
}

/** A source on a clock that stands still, its endpoint answered by the test. */
export async function openSource(
  initial: CredentialsResult = loaded('one'),
  mode: WatchMode = { by: 'notification' },
  shared?: SharedTokens,
  tracer?: GrantTracer,
) {
  const clock = new ManualClock();
  const { credentials, ...mounted } = fakeCredentials(initial, mode);
  const registry = new Registry();
  const { log, lines } = captureLog();
  const grants: PendingGrant[] = [];
  const source = openTokenSource({
    config: credentialConfig({ tokenUrl: 'http://127.0.0.1/token' }),
    credentials,
    endpoint: {
      requestToken: (client, signal, { answered, refused, ending } = {}) =>
        new Promise((resolve) => {
          grants.push({
            secret: client.method === 'client_secret_post' ? client.clientSecret : '',
            refused,
            ending,
            signal,
            answer: (outcome) => {
              if (outcome.result !== 'unavailable') answered?.(outcome.result === 'success' ? 200 : 401);
              resolve(outcome);
              return settle();
            },
          });
        }),
      tokenUrl: () => 'http://127.0.0.1/token?…',
      metadata: () => undefined,
      close: async () => {},
    },
    shared,
    clock,
    random: () => 0,
    metrics: createTokenMetrics(registry),
    credentialsMetrics: createCredentialsMetrics(registry),
    log,
    tracer,
  });
  onTestFinished(() => source.close());
  await settle();
  return {
    source,
    api: source.forUpstream('api'),
    clock,
    grants,
    ...mounted,
    lines,
    metrics: () => registry.metrics(),
    last: () => grants.at(-1) as PendingGrant,
  };
}

export const token = (accessToken: string, lifetimeMs = 300_000): TokenResponse => ({
  result: 'success',
  accessToken,
  lifetimeMs,
});
export const failure: TokenResponse = { result: 'unavailable', detail: 'ECONNREFUSED' };
export const rejection: TokenResponse = { result: 'rejected', detail: 'status 401 invalid_client' };
