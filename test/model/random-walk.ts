import { Random } from '../proxy/http1/fuzz/random.ts';
import type { Action, Afterwards, Method, Pace, Step, Stop, Version, Walk } from './walk.ts';

type Answer = Extract<Action, { do: 'upstream answers' }>;

type Ask = Extract<Action, { do: 'app asks' }>;

type Kind = readonly [weight: number, make: (random: Random) => Action];

const REQUEST_BYTES = [0, 7, 300, 1500, 40_000];
const ANSWER_BYTES = [0, 0, 11, 300, 300, 9000, 80_000, 300_000];
const JUMPS_MS = [0, 10, 900, 1100, 4_900, 9_000, 12_000, 25_000, 61_000];

const KINDS: readonly Kind[] = [
  [5, () => ({ do: 'app opens' })],
  [22, ask],
  [4, (random) => ({ do: 'app goes on', app: pick(random) })],
  [3, (random) => ({ do: 'app ends', app: pick(random) })],
  [3, (random) => ({ do: 'app leaves', app: pick(random), how: random.pick(['closes', 'resets']) })],
  [2, (random) => ({ do: 'app stops reading', app: pick(random) })],
  [2, (random) => ({ do: 'app reads on', app: pick(random) })],
  [26, answer],
  [5, (random) => ({ do: 'upstream goes on', upstream: pick(random), afterwards: afterwards(random) })],
  [2, (random) => ({ do: 'upstream informs', upstream: pick(random), status: random.pick([100, 103]) })],
  [1, (random) => ({ do: 'upstream says more', upstream: pick(random) })],
  [8, (random) => ({ do: 'upstream ends', upstream: pick(random), idle: random.chance(0.8) })],
  [3, (random) => ({ do: 'upstream resets', upstream: pick(random), idle: random.chance(0.6) })],
  [1, (random) => ({ do: 'upstream stops reading', upstream: pick(random) })],
  [1, (random) => ({ do: 'upstream reads on', upstream: pick(random) })],
  [3, (random) => ({ do: 'connections', are: random.pick(['made', 'made', 'held', 'refused']) })],
  [2, () => ({ do: 'token ends' })],
  [5, (random) => ({ do: 'token is granted', lifetimeMs: random.pick([1000, 5000, 60_000, 300_000]) })],
  [1, () => ({ do: 'token is refused' })],
  [4, (random) => ({ do: 'time passes', ms: random.pick(JUMPS_MS) })],
  [
    3,
    (random) => ({
      do: 'process is suspended',
      monotonicMs: random.pick(JUMPS_MS),
      wallMs: random.pick(JUMPS_MS),
      timersFirst: random.chance(0.5),
    }),
  ],
  [0.3, () => ({ do: 'drain begins' })],
];

/** What apps do beside, where they speak HTTP/2. */
const APP_STREAMS: readonly Kind[] = [
  [5, (random) => ({ do: 'app resets a stream', app: pick(random) })],
  [1, (random) => ({ do: 'app says goodbye', app: pick(random) })],
  [2, (random) => ({ do: 'app shuts its windows', app: pick(random) })],
];

/** What upstreams do beside, where they speak HTTP/2. */
const UPSTREAM_STREAMS: readonly Kind[] = [
  [
    6,
    (random) => ({
      do: 'upstream resets a stream',
      upstream: pick(random),
      code: random.pick(['refused', 'refused', 'cancelled', 'failed']),
    }),
  ],
  [3, (random) => ({ do: 'upstream says goodbye', upstream: pick(random), unprocessed: random.chance(0.5) })],
  [2, (random) => ({ do: 'upstream shuts its windows', upstream: pick(random) })],
  [2, (random) => ({ do: 'upstream allows', upstream: pick(random), streams: random.pick([0, 1, 2, 100]) })],
];

type Versions = Pick<Walk, 'app' | 'upstream'>;

function kindsOf({ app, upstream }: Versions): readonly Kind[] {
  const mayCall = app === 'h2' && upstream === 'h2';
  const common = KINDS.map(([weight, make]): Kind => [weight, make === ask && mayCall ? askOrCall : make]);
  return [...common, ...(app === 'h2' ? APP_STREAMS : []), ...(upstream === 'h2' ? UPSTREAM_STREAMS : [])];
}

/** The walk that a seed stands for; of these versions of HTTP, or of those that the seed draws. */
export function randomWalk(seed: number, versions = versionsOf(seed)): Walk {
  const random = new Random(seed, 0);
  const kinds = kindsOf(versions);
  const length = 2 + random.below(39);
  return {
    transport: random.chance(0.5) ? 'tls' : 'plain',
    ...versions,
    renewal: random.chance(0.5) ? 'at once' : 'by the walk',
    steps: [
      { do: 'app opens', pace: pace(random) },
      ...Array.from({ length }, (): Step => ({ ...randomAction(random, kinds), pace: pace(random) })),
    ],
  };
}

/** By a chance of their own, so that what a seed does over HTTP/1.1 stays as it is. */
function versionsOf(seed: number): Versions {
  const random = new Random(seed, 1);
  const version = (): Version => random.pick(['h2', 'http/1.1']);
  return { app: version(), upstream: version() };
}

function randomAction(random: Random, kinds: readonly Kind[]): Action {
  let rest = random.next() * kinds.reduce((sum, [weight]) => sum + weight, 0);
  for (const [weight, make] of kinds) {
    rest -= weight;
    if (rest < 0) return make(random);
  }
  return { do: 'app opens' };
}

function ask(random: Random): Ask {
  const method = random.pick<Method>(['GET', 'GET', 'POST', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD']);
  const bodiless = method === 'GET' || method === 'HEAD' || method === 'DELETE';
  const version = random.chance(0.05) ? '1.0' : '1.1';
  const body = bodiless
    ? 'none'
    : version === '1.0'
      ? 'length'
      : random.pick<'chunked' | 'length'>(['length', 'chunked']);
  return {
    do: 'app asks',
    app: pick(random),
    method,
    body,
    bytes: body === 'none' ? 0 : random.pick(REQUEST_BYTES),
    version,
    closes: random.chance(0.05),
    stops: stop(random, 0.8),
    grpc: false,
  };
}

/** Some of them are calls of gRPC. */
function askOrCall(random: Random): Action {
  const asked = ask(random);
  return asked.method === 'POST' ? { ...asked, grpc: random.chance(0.5) } : asked;
}

function answer(random: Random): Action {
  const status = random.pick<Answer['status']>([200, 200, 200, 200, 204, 304, 401, 401, 401, 500]);
  return {
    do: 'upstream answers',
    upstream: pick(random),
    status,
    framing: random.pick(['length', 'length', 'chunked', 'close']),
    bytes: random.pick(ANSWER_BYTES),
    closes: random.chance(0.15),
    keepAlive: random.chance(0.1) ? 1 + random.below(5) : undefined,
    stops: stop(random, 0.75),
    // The answer that is held back is the one whose end is worth most.
    afterwards: status === 401 && random.chance(0.3) ? 'ends' : afterwards(random),
  };
}

function afterwards(random: Random): Afterwards {
  return random.chance(0.75) ? 'stays' : random.pick(['ends', 'ends', 'resets']);
}

function stop(random: Random, whole: number): Stop {
  return random.chance(whole) ? 'whole' : random.pick(['in the head', 'after the head', 'in the body']);
}

function pace(random: Random): Pace {
  return random.pick(['same turn', 'same turn', 'next turn', 'settled', 'settled']);
}

function pick(random: Random): number {
  return random.below(8);
}
