/** Pods that ask a broker, each with the real engine's reducer, as the injector configures it. */

import { DEFAULT_RENEWAL } from '../../../src/config/renewal.ts';
import { BROKER_RECOVERY_MS } from '../../../src/injector/profiles/broker-credentials.ts';
import {
  INITIAL_STATE,
  reduce,
  type TokenEvent,
  type TokenState,
  validToken,
} from '../../../src/token/token-state.ts';
import { type ProviderModel, startProvider } from '../provider.ts';
import { seededRandom } from '../random.ts';
import { type Answer, credentialNamed, type Replica, startReplica } from './replica.ts';
import { SimulatedTime } from './simulated-time.ts';

export interface BrokeredFleetScenario {
  readonly pods: number;
  readonly replicas: number;
  /** Shared by the pods, evenly. */
  readonly credentials: number;
  readonly rolloutMs: number;
  readonly endMs: number;
  readonly provider: ProviderModel;
  /** When no replica is there. */
  readonly brokerOutage?: { readonly fromMs: number; readonly toMs: number };
  /** Of each replica. */
  readonly answersPerSecond: number;
  readonly seed: number;
}

export interface BrokeredFleetRun {
  /** When each request reached the provider, refused ones included; ascending. */
  readonly grantsAtMs: readonly number[];
  /** Requests that reached the broker, in each second. */
  readonly asksPerSecond: readonly number[];
  readonly allReadyAtMs: number;
  /** When the last pod had a token that may be sent, of those that had none when what was away came back. */
  readonly allBackAtMs: number;
  readonly podsThatRanOut: number;
  readonly turnedAway: number;
}

const CONNECTIONS = 1024;
const ROUND_TRIP_MS = 2;
const POLICY = { ...DEFAULT_RENEWAL, recoveryMs: BROKER_RECOVERY_MS };

interface Pod {
  state: TokenState;
  readonly credential: ReturnType<typeof credentialNamed>;
  ranOut: boolean;
}

export async function runBrokeredFleet(scenario: BrokeredFleetScenario): Promise<BrokeredFleetRun> {
  const random = seededRandom(scenario.seed);
  const time = new SimulatedTime();
  const provider = startProvider(scenario.provider);
  const curedAtMs = curedAt(scenario);
  const grantsAtMs: number[] = [];
  const asksPerSecond = new Array<number>(Math.ceil(scenario.endMs / 1000)).fill(0);
  const credentials = Array.from({ length: scenario.credentials }, (_, index) =>
    credentialNamed(`profile/${index}`),
  );
  let ready = 0;
  let allReadyAtMs = 0;
  let allBackAtMs = curedAtMs;
  let podsThatRanOut = 0;

  const replicas: readonly Replica[] = Array.from({ length: scenario.replicas }, () =>
    startReplica({
      time,
      random,
      answersPerSecond: scenario.answersPerSecond,
      connections: CONNECTIONS,
      roundTripMs: ROUND_TRIP_MS,
      requestToken: () => {
        const atMs = time.monotonicMs();
        grantsAtMs.push(atMs);
        const answer = provider(atMs);
        return new Promise((resolve) => time.after(answer.atMs - atMs, () => resolve(answer.outcome)));
      },
    }),
  );

  function isBrokerAway(): boolean {
    const { brokerOutage } = scenario;
    const atMs = time.monotonicMs();
    return brokerOutage !== undefined && atMs >= brokerOutage.fromMs && atMs < brokerOutage.toMs;
  }

  function ask(pod: Pod, answered: (answer: Answer) => void): void {
    const second = Math.floor(time.monotonicMs() / 1000);
    asksPerSecond[second] = (asksPerSecond[second] ?? 0) + 1;
    if (isBrokerAway()) {
      time.after(1, () => answered({ result: 'unavailable', detail: 'ECONNREFUSED' }));
      return;
    }
    // A Service picks one for each connection.
    (replicas[Math.floor(random() * replicas.length)] as Replica).ask(pod.credential, answered);
  }

  function apply(pod: Pod, event: TokenEvent): void {
    const before = pod.state;
    const now = time.now();
    pod.state = reduce(before, event, { now, random: random(), policy: POLICY });
    const { grant, due, token } = pod.state;
    if (grant !== undefined && grant !== before.grant) {
      ask(pod, (outcome) => apply(pod, { type: 'grant_ended', id: grant.id, outcome }));
    } else if (due !== undefined && due !== before.due) {
      time.after(due.at.monotonicMs - now.monotonicMs, () => apply(pod, { type: 'looked' }));
    }
    if (token !== before.token) {
      if (before.token === undefined) {
        ready += 1;
        if (ready === scenario.pods) allReadyAtMs = now.monotonicMs;
      }
      if (pod.ranOut) {
        pod.ranOut = false;
        allBackAtMs = now.monotonicMs;
      }
    }
  }

  const pods = Array.from(
    { length: scenario.pods },
    (_, index): Pod => ({
      state: INITIAL_STATE,
      credential: credentials[index % credentials.length] as Pod['credential'],
      ranOut: false,
    }),
  );
  for (const pod of pods) {
    time.after(scenario.rolloutMs * random(), () => apply(pod, { type: 'credentials_loaded' }));
  }
  time.after(curedAtMs, () => {
    for (const pod of pods) {
      if (validToken(pod.state, time.now()) === undefined) {
        pod.ranOut = true;
        podsThatRanOut += 1;
      }
    }
  });
  await time.run(scenario.endMs);
  return {
    grantsAtMs,
    asksPerSecond,
    allReadyAtMs,
    allBackAtMs,
    podsThatRanOut,
    turnedAway: replicas.reduce((total, replica) => total + replica.turnedAway, 0),
  };
}

/** When whatever was away is there again. */
export function curedAt({ brokerOutage, provider }: BrokeredFleetScenario): number {
  return (brokerOutage ?? provider.outage).toMs;
}

/** The most that fall into any second, wherever it begins. @param atMs ascending. */
export function mostInASecond(atMs: readonly number[], fromMs: number, toMs: number): number {
  let most = 0;
  let first = 0;
  for (const [index, at] of atMs.entries()) {
    if (at < fromMs) {
      first = index + 1;
      continue;
    }
    if (at >= toMs) break;
    while ((atMs[first] as number) <= at - 1000) first += 1;
    most = Math.max(most, index - first + 1);
  }
  return most;
}
