/** A replica of the broker over simulated time: the real grants and token engine behind so many answers a second. */

import { createGrants } from '../../../src/broker/brokered-tokens.ts';
import { onTheWire } from '../../../src/broker/messages.ts';
import type { BrokerCredential } from '../../../src/broker/secret-volume.ts';
import type { CredentialConfig } from '../../../src/config/config.ts';
import { DEFAULT_RENEWAL } from '../../../src/config/renewal.ts';
import { createLogger } from '../../../src/platform/log/logger.ts';
import type { LiveCredentials } from '../../../src/token/credentials.ts';
import type { TokenEndpoint } from '../../../src/token/provider/token-endpoint.ts';
import type { GrantedToken, RefusedGrant } from '../../../src/token/provider/token-response.ts';
import { openTokenSource } from '../../../src/token/token-source.ts';
import type { SimulatedTime } from './simulated-time.ts';

export type Answer = GrantedToken | RefusedGrant;

export interface Replica {
  /** Calls back with what a sidecar makes of the answer. */
  ask(credential: BrokerCredential, answered: (answer: Answer) => void): void;
  /** Requests that found all connections taken. */
  readonly turnedAway: number;
}

export interface ReplicaOptions {
  readonly time: SimulatedTime;
  readonly random: () => number;
  /** Answers a second that its processor has time for. */
  readonly answersPerSecond: number;
  /** Of requests, whether they wait for the processor or for a grant. */
  readonly connections: number;
  readonly roundTripMs: number;
  /** Asks the provider. */
  readonly requestToken: () => Promise<Answer>;
}

export function credentialNamed(name: string): BrokerCredential {
  const config: CredentialConfig = {
    name,
    tokenUrl: 'https://provider.example/token',
    directory: '/nowhere',
    clientAuth: { method: 'client_secret_post' },
    parameters: {},
    tls: {},
    requestTimeoutMs: 10_000,
    waitTimeoutMs: 10_000,
    renewal: DEFAULT_RENEWAL,
  };
  return { name, config, volumes: [] };
}

export function startReplica(options: ReplicaOptions): Replica {
  const { time, random, answersPerSecond, connections, roundTripMs } = options;
  const log = createLogger('silent');
  const grants = createGrants({
    credentials: { now: credentialNamed },
    objects: { watch: () => () => undefined },
    openSource: async (config) =>
      openTokenSource({
        config,
        credentials: MOUNTED,
        endpoint: endpointFor(options.requestToken),
        clock: time,
        random,
        metrics: { refreshed: () => undefined, observe: () => undefined, forget: () => undefined },
        credentialsMetrics: {
          reloaded: () => undefined,
          loaded: () => undefined,
          watched: () => undefined,
        },
        log,
      }),
    closeSource: (source) => source.close(),
    clock: time,
    log,
  });
  let open = 0;
  let turnedAway = 0;
  let busyUntilMs = 0;

  return {
    ask(credential, answered) {
      if (open >= connections) {
        turnedAway += 1;
        time.after(roundTripMs, () => answered({ result: 'unavailable', detail: 'ECONNRESET' }));
        return;
      }
      open += 1;
      busyUntilMs = Math.max(busyUntilMs, time.monotonicMs()) + 1000 / answersPerSecond;
      const reached = async (): Promise<void> => {
        const { status, headers, body } = onTheWire(await grants.answer(credential));
        open -= 1;
        const answer = understood(status, headers, body);
        time.after(roundTripMs / 2, () => answered(answer));
      };
      time.after(busyUntilMs - time.monotonicMs() + roundTripMs / 2, () => {
        reached().catch((error: unknown) => {
          // Ends the simulation: grants reject for faults of the program alone.
          setImmediate(() => {
            throw error;
          });
        });
      });
    },
    get turnedAway() {
      return turnedAway;
    },
  };
}

/** As `readTokenResponse` has it, for what the broker says to callers that it knows. */
function understood(status: number, headers: Readonly<Record<string, string>>, body: string): Answer {
  if (status === 503) {
    return {
      result: 'unavailable',
      detail: 'status 503',
      retryAfterMs: Number(headers['Retry-After']) * 1000,
    };
  }
  if (status !== 200) throw new Error(`the broker answered ${status}`);
  const { access_token: accessToken, expires_in: seconds } = JSON.parse(body) as {
    readonly access_token: string;
    readonly expires_in: number;
  };
  return { result: 'success', accessToken, lifetimeMs: seconds * 1000 };
}

const MOUNTED: LiveCredentials = {
  current: () => ({
    state: 'loaded',
    credentials: { method: 'client_secret_post', clientId: 'simulated', clientSecret: 'simulated' },
  }),
  refresh: () => Promise.resolve(),
  onChange: () => () => undefined,
  onRewrite: () => () => undefined,
  watchMode: () => ({ by: 'notification' }),
  onWatchMode: () => () => undefined,
  close: () => undefined,
};

function endpointFor(requestToken: () => Promise<Answer>): TokenEndpoint {
  return {
    requestToken: () => requestToken(),
    tokenUrl: () => 'https://provider.example/token',
    metadata: () => undefined,
    close: () => Promise.resolve(),
  };
}
