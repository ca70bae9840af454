/** The tokens of brokered credentials, each opened at its first request and closed when idle. */

import type { CredentialConfig } from '../config/config.ts';
import { messageOf } from '../platform/errors.ts';
import type { Logger } from '../platform/log/logger.ts';
import { within } from '../platform/time/async.ts';
import { type Clock, remainingMs } from '../platform/time/clock.ts';
import { TokenUnavailable } from '../token/bearer-source.ts';
import { tokenHash } from '../token/broker-protocol.ts';
import type { TokenSnapshot } from '../token/grant-report.ts';
import { leftToRenewMs } from '../token/schedule.ts';
import type { TokenSource } from '../token/token-source.ts';
import { type BrokerResponse, type GivenToken, refusal } from './messages.ts';
import {
  type BrokerCredential,
  type BrokeredCredentials,
  isSame,
  type LiveVolume,
  openLiveVolume,
  type watchObjects,
} from './secret-volume.ts';

export interface Grants {
  /**
   * Never rejects for a fault of the provider. Waits up to `MAX_WAIT_MS` each for the Secrets, the first token and the next one.
   * @param report names a token that an upstream has refused: if it is the held one, its renewal is awaited.
   */
  answer(credential: BrokerCredential, report?: RefusalReport): BrokerResponse | Promise<BrokerResponse>;
  readonly size: number;
  /** Nothing is opened afterwards. */
  close(): Promise<void>;
}

interface RefusalReport {
  /** SHA-256 of the token. */
  readonly hash: Buffer;
  /** One namespace's futile reports do not slow down another's. */
  readonly namespace: string;
}

interface GrantsOptions {
  readonly credentials: Pick<BrokeredCredentials, 'now'>;
  readonly objects: ReturnType<typeof watchObjects>;
  readonly openSource: (config: CredentialConfig) => Promise<TokenSource>;
  readonly closeSource: (source: TokenSource) => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
}

const MAX_WAIT_MS = 5000;

const IDLE_MS = 1_800_000;
const LOOK_INTERVAL_MS = 10_000;

const RECOVERY_MS = 3000;

/** Between requests to a provider, per replica and credential. */
const MIN_RETRY_MS = 1000;

interface Open {
  credential: BrokerCredential;
  readonly volumes: readonly LiveVolume[];
  readonly source: Promise<TokenSource>;
  opened: TokenSource | undefined;
  next: Promise<void> | undefined;
  askedAtMs: number;
}

export function createGrants(options: GrantsOptions): Grants {
  const { credentials, objects, clock, log } = options;
  const open = new Map<string, Open>();
  const closing = new Map<string, Promise<void>>();
  let cancelLook = clock.after(LOOK_INTERVAL_MS, look);
  /** A request may outlive its connection, and so the drain. */
  let isClosed = false;

  function look(): void {
    cancelLook = clock.after(LOOK_INTERVAL_MS, look);
    for (const [name, one] of open) {
      const isIdle = clock.monotonicMs() - one.askedAtMs >= IDLE_MS;
      const now = credentials.now(name);
      if (isIdle || now === undefined || !isSame(one.credential, now)) shut(name, one);
    }
  }

  function shut(name: string, one: Open): void {
    open.delete(name);
    const before = closing.get(name) ?? Promise.resolve();
    const closed = before
      .then(() => end(one))
      .catch((error: unknown) => {
        log.error({ err: messageOf(error), credential: name }, 'a credential could not be closed');
      });
    closing.set(name, closed);
    void closed.then(() => {
      if (closing.get(name) === closed) closing.delete(name);
    });
  }

  async function end({ source, volumes }: Open): Promise<void> {
    const opened = await source.catch(() => undefined);
    if (opened !== undefined) await options.closeSource(opened);
    for (const volume of volumes) await volume.close();
  }

  function openOne(credential: BrokerCredential): Open {
    const { name, config } = credential;
    const volumes: LiveVolume[] = [];
    const source = (async () => {
      await closing.get(name);
      for (const volume of credential.volumes) volumes.push(openLiveVolume(volume, { objects, clock, log }));
      await Promise.all(volumes.map(({ made }) => made));
      await within(MAX_WAIT_MS, Promise.all(volumes.map(({ filled }) => filled)), clock);
      const { renewal, waitTimeoutMs } = config;
      return await options.openSource({
        ...config,
        waitTimeoutMs: Math.min(waitTimeoutMs, MAX_WAIT_MS),
        renewal: {
          ...renewal,
          startupJitterMs: 0,
          recoveryMs: Math.min(renewal.recoveryMs, RECOVERY_MS),
          shortestRetryMs: MIN_RETRY_MS,
        },
      });
    })();
    return {
      credential,
      volumes,
      source,
      opened: undefined,
      next: undefined,
      askedAtMs: clock.monotonicMs(),
    };
  }

  function openFor(credential: BrokerCredential): Open {
    const before = open.get(credential.name);
    if (before !== undefined) {
      before.askedAtMs = clock.monotonicMs();
      if (before.credential === credential) return before;
      if (isSame(before.credential, credential)) {
        before.credential = credential;
        return before;
      }
      shut(credential.name, before);
    }
    const opened = openOne(credential);
    open.set(credential.name, opened);
    opened.source.then(
      (source) => {
        opened.opened = source;
      },
      () => {
        if (open.get(credential.name) === opened) shut(credential.name, opened);
      },
    );
    return opened;
  }

  function given(source: TokenSource): GivenToken | undefined {
    const held = source.held();
    if (held === undefined) return undefined;
    const leftMs = remainingMs(held.sendableUntil, clock.now());
    if (leftMs < leastLeftMs(source.snapshot())) return undefined;
    return { kind: 'given', token: held.token, expiresInSeconds: Math.max(1, Math.floor(leftMs / 1000)) };
  }

  function nextToken(one: Open, source: TokenSource): Promise<void> {
    one.next ??= new Promise<void>((resolve) => {
      const done = (): void => {
        cancel();
        stopListening();
        one.next = undefined;
        resolve();
      };
      const cancel = clock.after(MAX_WAIT_MS, done);
      const stopListening = source.onToken(done);
    });
    return one.next;
  }

  /** Renewals are bounded by this namespace's futile reports, and by all reports. */
  async function answerToReport(
    source: TokenSource,
    { hash, namespace }: RefusalReport,
  ): Promise<BrokerResponse | undefined> {
    const held = source.held();
    if (held === undefined || !tokenHash.isOf(hash, held.token)) return undefined;
    await source.forUpstream(namespace).replace(`Bearer ${held.token}`);
    const { grantInFlight, consecutiveFailures } = source.snapshot();
    const isSame = source.held()?.token === held.token;
    // The requester keeps its token meanwhile.
    if (isSame && (grantInFlight || consecutiveFailures > 0))
      return unavailable(untilRenewalMs(source, clock));
    return undefined;
  }

  async function answerLater(one: Open, report: RefusalReport | undefined): Promise<BrokerResponse> {
    const source = await one.source;
    // The first token may come from another replica, and be the refused one.
    if (report !== undefined && source.held() === undefined) await source.obtain().catch(() => undefined);
    const answered = report === undefined ? undefined : await answerToReport(source, report);
    const now = answered ?? given(source);
    if (now !== undefined) return now;
    try {
      await source.obtain();
      const { grantInFlight } = source.snapshot();
      if (given(source) === undefined && grantInFlight) await nextToken(one, source);
    } catch (error) {
      if (!(error instanceof TokenUnavailable)) throw error;
      return unavailable(error.retryAfterSeconds * 1000);
    }
    return given(source) ?? unavailable(untilRenewalMs(source, clock));
  }

  return {
    answer(credential, report) {
      if (isClosed) return refusal('temporarily_unavailable', 'the broker is leaving', 0);
      const one = openFor(credential);
      // A report of a replaced token is answered at once.
      const held = report === undefined ? undefined : one.opened?.held();
      const isOfHeld =
        report !== undefined && (held === undefined || tokenHash.isOf(report.hash, held.token));
      const now = one.opened === undefined || isOfHeld ? undefined : given(one.opened);
      return now ?? answerLater(one, report);
    },
    get size() {
      return open.size;
    },
    async close() {
      isClosed = true;
      cancelLook();
      for (const [name, one] of open) shut(name, one);
      await Promise.all(closing.values());
    },
  };
}

function unavailable(retryAfterMs: number): BrokerResponse {
  return refusal('temporarily_unavailable', 'the provider gives no token now', retryAfterMs);
}

function untilRenewalMs(source: TokenSource, clock: Clock): number {
  const { renewalAtMs } = source.snapshot();
  return renewalAtMs === undefined ? 0 : Math.max(0, renewalAtMs - clock.now().wallMs);
}

/** With less life left, a token is not given while its successor is requested. */
function leastLeftMs(snapshot: TokenSnapshot): number {
  const { grantInFlight, consecutiveFailures, requestedAtMs, expiresAtMs } = snapshot;
  if (!grantInFlight && consecutiveFailures === 0) return 0;
  if (requestedAtMs === undefined || expiresAtMs === undefined) return 0;
  return leftToRenewMs(expiresAtMs - requestedAtMs);
}
