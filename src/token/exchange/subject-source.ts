import { withoutRepeatLimit } from '../../platform/log/logger.ts';
import { type AwaitsGrant, type BearerSource, TokenUnavailable } from '../bearer-source.ts';
import { signingKey } from '../client/client-authentication.ts';
import type { Credentials, CredentialsResult } from '../credentials.ts';
import { TokenRequestHistory, type TokenSnapshot } from '../grant-report.ts';
import { CONNECTIONS_FOR_REQUESTS } from '../provider/token-endpoint.ts';
import type { TokenResponse } from '../provider/token-response.ts';
import type { TokenSource, TokenSourceOptions } from '../token-source.ts';
import type { FailedTokenRequest } from '../token-state.ts';
import { isOfSubject, SubjectTokens } from './subject-tokens.ts';

/** Ready once the mounted credentials can be used. */
export function openSubjectSource(options: Omit<TokenSourceOptions, 'random'>): TokenSource {
  const { config, endpoint, clock, metrics, credentialsMetrics } = options;
  const log = options.log.child({ credential: config.name });
  const history = new TokenRequestHistory();
  const openedAtMs = clock.now().wallMs;
  let unusableSinceMs = options.credentials.current().state === 'loaded' ? undefined : openedAtMs;
  const loaded = Promise.withResolvers<void>();
  const closing = new AbortController();
  let credentials: Credentials | undefined;
  let lastFailure: FailedTokenRequest | undefined;
  let consecutiveFailures = 0;
  let lastAnswerAtMs: number | undefined;
  const tokens = new SubjectTokens({
    name: config.name,
    clock,
    atOnce: CONNECTIONS_FOR_REQUESTS,
    timeoutMs: config.waitTimeoutMs,
    exchange,
  });

  async function exchange(
    subject: string,
    begun: AwaitsGrant,
    ending: string | undefined,
  ): Promise<TokenResponse> {
    if (credentials === undefined) {
      const { detail = '' } = options.credentials.current();
      return { result: 'unavailable', detail: `the mounted credentials cannot be used: ${detail}` };
    }
    const { monotonicMs, wallMs } = clock.now();
    const span = options.tracer?.begin(config.name, 'subject');
    if (span !== undefined) begun(span.trace);
    let status: number | undefined;
    const outcome = await endpoint.requestToken(credentials, closing.signal, {
      subject,
      ending,
      answered: (seen) => {
        status = seen;
        lastAnswerAtMs = clock.now().wallMs;
      },
    });
    const { result } = outcome;
    span?.end({
      result: closing.signal.aborted ? 'given_up' : result,
      where: endpoint.tokenUrl() ?? config.issuerUrl,
      status,
    });
    const durationMs = clock.monotonicMs() - monotonicMs;
    if (outcome.result !== 'success') {
      log.warn({ result, detail: outcome.detail }, 'the token of a request was not exchanged');
      // Not a failure of the source: anybody may send a bad token.
      if (isOfSubject(outcome)) return outcome;
      lastFailure = { result: outcome.result, detail: outcome.detail, at: clock.now() };
      consecutiveFailures += 1;
    } else {
      lastFailure = undefined;
      consecutiveFailures = 0;
    }
    metrics.refreshed(config.name, result, 'subject', durationMs);
    history.add({ atMs: wallMs, reason: 'subject', result, durationMs });
    return outcome;
  }

  function takeCredentials(reading: CredentialsResult): void {
    if (reading.state !== 'loaded') {
      withoutRepeatLimit(log).warn(
        { state: reading.state, detail: reading.detail },
        'credentials cannot be used',
      );
      return;
    }
    if (credentials === reading.credentials) return;
    log.info(credentials === undefined ? 'credentials loaded' : 'credentials changed');
    credentials = reading.credentials;
    credentialsMetrics.loaded(config.name, clock.now().wallMs);
    tokens.forgetFailure();
    loaded.resolve();
  }

  function withoutSubject(): TokenUnavailable {
    return new TokenUnavailable(`credential ${config.name}: tokens are exchanged for those of requests`, 0);
  }

  function bySubject(subject: string, caller?: string): BearerSource {
    return {
      current: () => tokens.current(subject),
      obtain: (waiter) => tokens.obtain(subject, { ...waiter, caller }),
      replace: (refused, waiter) => tokens.replace(subject, refused, { ...waiter, caller }),
      accepted() {},
    };
  }

  const source: BearerSource = {
    current: () => undefined,
    obtain: () => Promise.reject(withoutSubject()),
    replace: async () => undefined,
    accepted() {},
    bySubject,
  };

  function snapshot(): TokenSnapshot {
    const { state, detail } = options.credentials.current();
    return {
      name: config.name,
      required: config.required !== false,
      tokens: { kind: 'exchanged', refusesAll: tokens.refusesAll },
      openedAtMs,
      tokenUrl: endpoint.tokenUrl(),
      ready: credentials !== undefined,
      obtainedFirstToken: credentials !== undefined,
      requestedAtMs: undefined,
      expiresAtMs: undefined,
      renewalAtMs: undefined,
      renewalReason: undefined,
      grantInFlight: tokens.exchanging > 0,
      consecutiveFailures,
      lastFailure,
      credentials: {
        state,
        detail,
        unusableSinceMs,
        watchedBy: options.credentials.watchMode().by,
        previousInUse: false,
        clientKey: credentials && signingKey(credentials),
      },
      failingSinceMs: history.failingSinceMs,
      lastAnswerAtMs,
      proofs: endpoint.proofs?.report(undefined, credentials),
    };
  }

  metrics.observe(config.name, snapshot);
  options.credentials.onChange((reading) => {
    unusableSinceMs = reading.state === 'loaded' ? undefined : (unusableSinceMs ?? clock.now().wallMs);
    credentialsMetrics.reloaded(config.name, reading.state === 'loaded' ? 'success' : reading.state);
    takeCredentials(reading);
  });
  options.credentials.onWatchMode(({ by }) => credentialsMetrics.watched(config.name, by === 'notification'));
  credentialsMetrics.watched(config.name, options.credentials.watchMode().by === 'notification');
  takeCredentials(options.credentials.current());

  return {
    name: config.name,
    firstToken: loaded.promise,
    current: source.current,
    obtain: source.obtain,
    forUpstream: () => source,
    renew: () => 'impossible',
    snapshot,
    grants: () => history.read(clock.now().wallMs),
    held: () => undefined,
    onToken: () => () => {},
    async close() {
      options.credentials.close();
      closing.abort();
      await endpoint.close();
    },
  };
}
