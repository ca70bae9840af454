/**
 * Keeps one credential's token alive: the shell around `reduce`, with timer, requests and waiting callers. Every decision is the
 * reducer's.
 */

import type { CredentialConfig } from '../config/config.ts';
import type { Incident } from '../platform/log/incidents.ts';
import { type Logger, withoutRepeatLimit } from '../platform/log/logger.ts';
import type { WatchMode } from '../platform/mounted/directory-watch.ts';
import type { CredentialsMetrics } from '../platform/mounted/metrics.ts';
import { type Clock, type Instant, remainingMs } from '../platform/time/clock.ts';
import {
  type Authorization,
  accessTokenIn,
  type BearerSource,
  type TokenProvider,
  TokenUnavailable,
  type TokenWaiter,
} from './bearer-source.ts';
import { signingKey } from './client/client-authentication.ts';
import { credentialCondition } from './condition.ts';
import type { Credentials, CredentialsResult, LiveCredentials } from './credentials.ts';
import {
  type GrantSpan,
  type GrantTracer,
  type PastGrants,
  reportGrant,
  TokenRequestHistory,
  type TokenSnapshot,
} from './grant-report.ts';
import type { TokenMetrics } from './metrics.ts';
import type { TokenEndpoint } from './provider/token-endpoint.ts';
import type { TokenResponse } from './provider/token-response.ts';
import { isAboutToEnd } from './schedule.ts';
import { checkShared, type SharedTokens } from './shared-tokens.ts';
import {
  INITIAL_STATE,
  reduce,
  type TokenEvent,
  type TokenRequestInFlight,
  type TokenState,
  validToken,
} from './token-state.ts';
import { WaitingCallers } from './waiters.ts';
import { whyNoToken } from './why-no-token.ts';

export interface TokenSource extends TokenProvider, Pick<BearerSource, 'current' | 'obtain'> {
  readonly name: string;
  snapshot(): TokenSnapshot;
  grants(): PastGrants;
  held(): GivenToken | undefined;
  /** Calls back after another token was obtained. Returns a function that stops it. */
  onToken(listener: () => void): () => void;
  /** Requests a token now, whatever is planned, for a person. */
  renew(): RenewalResponse;
  /** Never rejects. */
  readonly firstToken: Promise<void>;
  /** Callers that wait get TokenUnavailable. */
  close(): Promise<void>;
}

/**
 * - `too_soon`: the last request was too recent.
 * - `impossible`: the credentials cannot be used, or tokens are obtained for requests alone.
 */
export type RenewalResponse = 'begun' | 'too_soon' | 'impossible';

/** Without its scheme. */
export interface GivenToken {
  readonly token: string;
  readonly sendableUntil: Instant;
}

export interface TokenSourceOptions {
  readonly config: CredentialConfig;
  /** Closed with the source. */
  readonly credentials: LiveCredentials;
  readonly endpoint: TokenEndpoint;
  readonly shared?: SharedTokens | undefined;
  readonly clock: Clock;
  /** A number in [0, 1). */
  readonly random: () => number;
  readonly metrics: TokenMetrics;
  readonly credentialsMetrics: CredentialsMetrics;
  readonly log: Logger;
  readonly tracer?: GrantTracer | undefined;
}

/** The longest sleep: a suspended machine's monotonic clock stands still while the token grows old. */
const MAX_SLEEP_MS = 15_000;

const MAX_LOOK_MS = 1000;

/** A request waits only for a grant that begins within this. */
const NEAR_MS = 1000;

export function openTokenSource(options: TokenSourceOptions): TokenSource {
  const { config, endpoint, clock, metrics } = options;
  const log = options.log.child({ credential: config.name });
  const wholeLog = withoutRepeatLimit(log);
  const callers = new WaitingCallers({ clock, timeoutMs: config.waitTimeoutMs, unavailable });
  const history = new TokenRequestHistory();
  const openedAtMs = clock.now().wallMs;
  let rejectedSinceMs: number | undefined;
  let lastAnswerAtMs: number | undefined;
  /** To whom the held token was granted. */
  let grantee: Credentials | undefined;
  let unusableSinceMs = options.credentials.current().state === 'loaded' ? undefined : openedAtMs;
  const tokenListeners = new Set<() => void>();
  const firstToken = Promise.withResolvers<void>();
  let state: TokenState = INITIAL_STATE;
  let credentials: Credentials | undefined;
  let previousCredentials: Credentials | undefined;
  let cancelTimer: (() => void) | undefined;
  let abortGrant: AbortController | undefined;
  /** Until the next grant succeeds. */
  let refused: Authorization | undefined;
  let takesRefusals = false;
  let span: GrantSpan | undefined;
  let closed = false;
  let warnedOfPolling = false;
  let incident: Incident | undefined;

  function apply(event: TokenEvent): void {
    if (closed) return;
    const before = state;
    state = reduce(before, event, { now: clock.now(), random: options.random(), policy: config.renewal });
    if (state.grant !== undefined && state.grant.id !== before.grant?.id) void request(state.grant);
    if (state.token !== before.token) {
      firstToken.resolve();
      for (const listener of tokenListeners) listener();
    }
    if (before.grant !== undefined && state.grant === undefined) settleCallers();
    if (state !== before || cancelTimer === undefined) restartTimer();
  }

  function restartTimer(): void {
    cancelTimer?.();
    cancelTimer = undefined;
    if (state.due === undefined) return;
    const sleepMs = Math.min(MAX_SLEEP_MS, remainingMs(state.due.at, clock.now()));
    cancelTimer = clock.after(sleepMs, () => {
      cancelTimer = undefined;
      apply({ type: 'looked' });
    });
  }

  async function request(grant: TokenRequestInFlight): Promise<void> {
    abortGrant?.abort();
    const abort = new AbortController();
    abortGrant = abort;
    const where = () => endpoint.tokenUrl() ?? config.issuerUrl;
    let status: number | undefined;
    const own = options.tracer?.begin(config.name, grant.reason);
    span = own;
    const giveUp = (): void => own?.end({ result: 'given_up', where: where(), status });
    abort.signal.addEventListener('abort', giveUp);
    if (own !== undefined) callers.begun(own.trace);
    // A notification may be late or lost. After a change, a new grant replaces this one.
    await lookAtCredentials();
    if (abort.signal.aborted) return;
    log.debug({ reason: grant.reason }, 'asking for a token');
    const isLastChance = grant.reason === 'previous_credentials';
    // A grant is only planned once its credentials have been read.
    const client = (isLastChance ? previousCredentials : credentials) as Credentials;
    const outcome = await obtainToken(grant, client, abort.signal, (seen) => {
      status = seen;
      lastAnswerAtMs = clock.now().wallMs;
    });
    // Superseded: the outcome counts nowhere.
    if (abort.signal.aborted) return;
    const durationMs = clock.now().monotonicMs - grant.requestedAt.monotonicMs;
    abort.signal.removeEventListener('abort', giveUp);
    span = undefined;
    own?.end({ result: outcome.result, where: where(), status });
    history.add({
      atMs: grant.requestedAt.wallMs,
      reason: grant.reason,
      result: outcome.result,
      durationMs,
    });
    if (outcome.result === 'rejected') rejectedSinceMs ??= grant.requestedAt.wallMs;
    if (outcome.result === 'success') {
      grantee = client;
      if (!isLastChance) rejectedSinceMs = undefined;
      refused = undefined;
      takesRefusals = outcome.takesRefusals === true;
    }
    if (!isShared(outcome)) metrics.refreshed(config.name, outcome.result, grant.reason, durationMs);
    apply({ type: 'grant_ended', id: grant.id, outcome });
    incident = reportGrant(wholeLog, {
      grant,
      outcome,
      durationMs,
      state,
      now: clock.now(),
      where: where(),
      incident,
      advise: () => credentialCondition(config, snapshot(), clock.now().wallMs).advice,
    });
  }

  function obtainToken(
    grant: TokenRequestInFlight,
    client: Credentials,
    signal: AbortSignal,
    answered: (status: number) => void,
  ): Promise<TokenResponse> {
    if (grant.reason === 'upstream_401') refused = state.token?.authorization;
    const isSame = refused !== undefined && refused === state.token?.authorization;
    const report = isSame && takesRefusals && refused !== undefined ? accessTokenIn(refused) : undefined;
    const ending = state.token !== undefined && isAboutToEnd(state.token.expiresAt, clock.now());
    const ask = (): Promise<TokenResponse> =>
      endpoint.requestToken(client, signal, {
        answered,
        refused: report,
        ending: ending && state.token !== undefined ? accessTokenIn(state.token.authorization) : undefined,
      });
    // Tokens granted to outgoing credentials are not shared.
    if (options.shared === undefined || grant.reason === 'previous_credentials') return ask();
    const held = { token: state.token, isRefused: grant.reason === 'upstream_401' };
    return options.shared.obtain(
      {
        credentials: client,
        signal,
        judge: (token) => checkShared(token, held, config.renewal, clock.now()),
      },
      ask,
    );
  }

  /** Bounded, since a volume's file system may hang. */
  function lookAtCredentials(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = clock.after(MAX_LOOK_MS, resolve);
      void options.credentials.refresh().then(() => {
        cancel();
        resolve();
      });
    });
  }

  function takeCredentials(reading: CredentialsResult): void {
    if (reading.state !== 'loaded') {
      // The last good ones stay in use, since a Secret is briefly missing while it is changed.
      wholeLog.warn({ state: reading.state, detail: reading.detail }, 'credentials cannot be used');
      return;
    }
    if (credentials === reading.credentials) {
      log.info('credentials are there again, as they were');
      apply({ type: 'credentials_rewritten' });
      return;
    }
    log.info(credentials === undefined ? 'credentials loaded' : 'credentials changed');
    previousCredentials = credentials;
    rejectedSinceMs = undefined;
    credentials = reading.credentials;
    options.credentialsMetrics.loaded(config.name, clock.now().wallMs);
    apply({ type: 'credentials_loaded' });
  }

  function reportWatch(mode: WatchMode): void {
    options.credentialsMetrics.watched(config.name, mode.by === 'notification');
    if (mode.by === 'notification' || warnedOfPolling) return;
    warnedOfPolling = true;
    log.warn(
      { code: mode.code, directory: config.directory },
      'the system gives no watch on the mounted credentials: they are looked at now and then, and before every grant',
    );
  }

  function settleCallers(): void {
    const authorization = current();
    if (authorization !== undefined) callers.give(authorization);
    else if (!isGrantNear()) callers.refuse(unavailable);
  }

  function isGrantNear(): boolean {
    if (state.grant !== undefined) return true;
    return state.due !== undefined && remainingMs(state.due.at, clock.now()) <= NEAR_MS;
  }

  function unavailable(): TokenUnavailable {
    const unusable = credentials === undefined ? options.credentials.current().detail : undefined;
    const { reason } = whyNoToken(config, { unusable, lastFailure: state.lastFailure });
    const retryAfterMs = state.due === undefined ? 0 : remainingMs(state.due.at, clock.now());
    return new TokenUnavailable(`credential ${config.name}: no valid token is held; ${reason}`, retryAfterMs);
  }

  function current(): Authorization | undefined {
    return validToken(state, clock.now())?.authorization;
  }

  /** @throws {TokenUnavailable} */
  function waitForGrant(waiter: TokenWaiter | undefined): Promise<Authorization> {
    if (span !== undefined) waiter?.awaits?.(span.trace);
    return callers.wait(waiter);
  }

  async function obtain(waiter?: TokenWaiter): Promise<Authorization> {
    apply({ type: 'looked' });
    const authorization = current();
    if (authorization !== undefined) return authorization;
    if (closed || !isGrantNear()) throw unavailable();
    return waitForGrant(waiter);
  }

  async function replace(
    upstream: string,
    refused: Authorization,
    waiter?: TokenWaiter,
  ): Promise<Authorization | undefined> {
    apply({ type: 'refused_by_upstream', upstream, authorization: refused });
    if (state.token?.authorization !== refused) return current();
    if (state.grant === undefined || closed) return undefined;
    try {
      const authorization = await waitForGrant(waiter);
      // Some providers grant one token again while it lives.
      return authorization === refused ? undefined : authorization;
    } catch {
      // The grant's failure was logged; the caller passes the 401 on.
      return undefined;
    }
  }

  function forUpstream(upstream: string): BearerSource {
    /** Acceptance is reported once, until a refusal. */
    let told: Authorization | undefined;
    return {
      current,
      obtain,
      replace(refused, waiter) {
        told = undefined;
        return replace(upstream, refused, waiter);
      },
      accepted(authorization) {
        if (authorization === told) return;
        told = authorization;
        apply({ type: 'accepted_by_upstream', upstream, authorization });
      },
    };
  }

  function renew(): RenewalResponse {
    if (closed || credentials === undefined) return 'impossible';
    apply({ type: 'refresh_requested' });
    return state.grant === undefined ? 'too_soon' : 'begun';
  }

  function snapshot(): TokenSnapshot {
    const now = clock.now();
    const reading = options.credentials.current();
    return {
      name: config.name,
      required: config.required !== false,
      tokens: { kind: 'held' },
      openedAtMs,
      tokenUrl: endpoint.tokenUrl(),
      ready: validToken(state, now) !== undefined,
      obtainedFirstToken: state.token !== undefined,
      requestedAtMs: state.token?.requestedAt.wallMs,
      expiresAtMs: finite(state.token?.expiresAt.wallMs),
      renewalAtMs: state.due?.at.wallMs,
      renewalReason: state.due?.reason,
      grantInFlight: state.grant !== undefined,
      consecutiveFailures: state.consecutiveFailures,
      lastFailure: state.lastFailure,
      credentials: {
        state: reading.state,
        detail: reading.detail,
        unusableSinceMs,
        watchedBy: options.credentials.watchMode().by,
        rejectedSinceMs,
        previousInUse: state.token?.grantedTo === 'previous',
        previousServes:
          grantee !== undefined && grantee !== credentials && state.previousCredentials === 'untried',
        clientKey: credentials && signingKey(credentials),
      },
      failingSinceMs: history.failingSinceMs,
      lastAnswerAtMs,
      proofs: endpoint.proofs?.report(state.token?.authorization, credentials),
    };
  }

  metrics.observe(config.name, snapshot);
  options.credentials.onChange((reading) => {
    unusableSinceMs = reading.state === 'loaded' ? undefined : (unusableSinceMs ?? clock.now().wallMs);
    options.credentialsMetrics.reloaded(config.name, reading.state === 'loaded' ? 'success' : reading.state);
    takeCredentials(reading);
  });
  options.credentials.onWatchMode(reportWatch);
  reportWatch(options.credentials.watchMode());
  options.credentials.onRewrite(() => apply({ type: 'credentials_rewritten' }));
  takeCredentials(options.credentials.current());

  return {
    name: config.name,
    firstToken: firstToken.promise,
    current,
    obtain,
    forUpstream,
    renew,
    snapshot,
    grants: () => history.read(clock.now().wallMs),
    held() {
      const valid = validToken(state, clock.now());
      if (valid === undefined) return undefined;
      return { token: accessTokenIn(valid.authorization), sendableUntil: valid.sendableUntil };
    },
    onToken(listener) {
      tokenListeners.add(listener);
      return () => tokenListeners.delete(listener);
    },
    async close() {
      closed = true;
      options.credentials.close();
      cancelTimer?.();
      abortGrant?.abort();
      callers.refuse(unavailable);
      await endpoint.close();
    },
  };
}

function isShared(outcome: TokenResponse): boolean {
  return outcome.result === 'success' && outcome.sharedAgeMs !== undefined;
}

function finite(atMs: number | undefined): number | undefined {
  return Number.isFinite(atMs) ? atMs : undefined;
}
