import { expect, it, onTestFinished } from 'vitest';
import type { RouteStats } from '../../../src/proxy/metrics.ts';
import { TrafficHistory } from '../../../src/sidecar/status/traffic-history.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const MAX_ROUTES = 64;

const INTERVALS = 60;

const INTERVAL_MS = 10_000;

const BOUNDS = [0.1, 1, 10];

type Counted = { -readonly [Key in keyof RouteStats]: RouteStats[Key] };

function nothing(): Counted {
  return {
    total: 0,
    inFlight: 0,
    errors: 0,
    errorsByCode: new Map(),
    classes: [0, 0, 0, 0, 0, 0],
    durations: [0, 0, 0, 0],
    refusedTokens: 0,
    grpc: { calls: 0, failures: 0 },
  };
}

function openHistory() {
  const clock = new ManualClock();
  const routes = new Map<string, Counted>();
  const history = new TrafficHistory({ stats: () => snapshot(), bounds: BOUNDS, clock });
  onTestFinished(() => history.close());
  /** As the metrics give them: copies. */
  const snapshot = () => new Map([...routes].map(([name, counted]) => [name, structuredClone(counted)]));
  function serve(name: string, status: number, bucket = 0, code?: string): void {
    const counted = routes.get(name) ?? nothing();
    routes.set(name, counted);
    counted.total += 1;
    (counted.classes as number[])[Math.floor(status / 100)] =
      (counted.classes[Math.floor(status / 100)] ?? 0) + 1;
    (counted.durations as number[])[bucket] = (counted.durations[bucket] ?? 0) + 1;
    if (code === undefined) return;
    counted.errors += 1;
    counted.errorsByCode = new Map(counted.errorsByCode).set(code, (counted.errorsByCode.get(code) ?? 0) + 1);
  }
  return { clock, routes, history, serve };
}

it('has the requests, errors and durations of each ten seconds, oldest first', async () => {
  const { clock, history, serve } = openHistory();
  serve('api', 200);
  serve('api', 200, 1);
  await clock.advance(INTERVAL_MS);
  serve('api', 502, 2, 'upstream_timeout');
  await clock.advance(INTERVAL_MS);
  await clock.advance(INTERVAL_MS);
  expect(history.recent('api')).toMatchObject({
    intervalSeconds: 10,
    requests: [2, 1, 0],
    errors: [0, 1, 0],
    p50Ms: [100, 5500, null],
    statusClasses: { '2xx': 2, '5xx': 1 },
    errorsByCode: { upstream_timeout: 1 },
  });
  expect(history.lastMinute('api')).toMatchObject({ requests: 3, serverErrors: 1 });
  expect(history.recent('other')).toBeUndefined();
});

it('forgets after ten minutes, and keeps nothing of a route that rests for as long', async () => {
  const { clock, history, serve } = openHistory();
  serve('api', 200);
  serve('busy', 200);
  await clock.advance(INTERVAL_MS);
  for (let interval = 1; interval < INTERVALS; interval++) {
    serve('busy', 204);
    await clock.advance(INTERVAL_MS);
  }
  expect(history.recent('api')?.requests).toEqual([1, ...Array(INTERVALS - 1).fill(0)]);
  serve('busy', 204);
  await clock.advance(INTERVAL_MS);
  expect(history.recent('api')).toBeUndefined();
  expect(history.recent('busy')?.requests).toEqual(Array(INTERVALS).fill(1));
  expect(history.size).toBe(1);
});

it('costs nothing without requests, and is bounded in routes', async () => {
  const { clock, routes, history, serve } = openHistory();
  for (let route = 0; route < 1000; route++) routes.set(`route-${route}`, nothing());
  await clock.advance(INTERVAL_MS);
  expect(history.size).toBe(0);
  for (let route = 0; route < 1000; route++) serve(`route-${route}`, 200);
  await clock.advance(INTERVAL_MS);
  expect(history.size).toBe(MAX_ROUTES);
  // Those that rest make room.
  for (let interval = 0; interval < INTERVALS; interval++) await clock.advance(INTERVAL_MS);
  expect(history.size).toBe(0);
  serve('route-999', 200);
  await clock.advance(INTERVAL_MS);
  expect(history.recent('route-999')?.requests.at(-1)).toBe(1);
});

it('since when a route fails is remembered beyond its ten minutes, for as long as the verdict says so', async () => {
  const { clock, history, serve } = openHistory();
  serve('api', 200);
  await clock.advance(INTERVAL_MS);
  const beganMs = clock.now().wallMs;
  for (let interval = 0; interval < 2 * INTERVALS; interval++) {
    serve('api', 502, 0, 'upstream_unreachable');
    await clock.advance(INTERVAL_MS);
  }
  expect(history.lastMinute('api')?.failingSinceMs).toBe(beganMs);
  for (let interval = 0; interval < 5; interval++) await clock.advance(INTERVAL_MS);
  expect(history.lastMinute('api')?.failingSinceMs).toBe(beganMs);
  await clock.advance(INTERVAL_MS);
  expect(history.lastMinute('api')?.failingSinceMs).toBeUndefined();
});

it.each<[string, number, string | undefined]>([
  ["the app's own mistakes", 404, 'route_not_found'],
  ['requests without a token, which are said of the credential', 503, 'token_unavailable'],
])('a route does not begin to fail by %s', async (_, status, code) => {
  const { clock, history, serve } = openHistory();
  for (let request = 0; request < 10; request++) serve('api', status, 0, code);
  await clock.advance(INTERVAL_MS);
  expect(history.lastMinute('api')?.failingSinceMs).toBeUndefined();
  const beganMs = clock.now().wallMs;
  for (let request = 0; request < 10; request++) serve('api', 502, 0, 'upstream_unreachable');
  await clock.advance(INTERVAL_MS);
  expect(history.lastMinute('api')?.failingSinceMs).toBe(beganMs);
});

it('a stray failure long before is no beginning, and another fault has one of its own', async () => {
  const { clock, history, serve } = openHistory();
  const pass = async (status: number, code?: string) => {
    for (let request = 0; request < 10; request++) serve('api', status, 0, code);
    await clock.advance(INTERVAL_MS);
  };
  await pass(200);
  serve('api', 502, 0, 'upstream_timeout');
  for (let interval = 0; interval < 4; interval++) await pass(200);
  expect(history.lastMinute('api')?.failingSinceMs).toBeUndefined();
  const beganMs = clock.now().wallMs;
  await pass(502, 'upstream_unreachable');
  expect(history.lastMinute('api')?.failingSinceMs).toBe(beganMs);
  // What is left of it is less than a tenth, while the upstream itself answers with errors.
  for (let interval = 0; interval < 5; interval++) await pass(200);
  const nextBeganMs = clock.now().wallMs;
  for (let request = 0; request < 50; request++) serve('api', 500);
  await pass(200);
  expect(history.lastMinute('api')?.failingSinceMs).toBe(nextBeganMs);
});

it('ends with its timer', () => {
  const { clock, history } = openHistory();
  expect(clock.pendingTimers).toBe(1);
  history.close();
  expect(clock.pendingTimers).toBe(0);
});

it.each([
  [[10, 0, 0, 0], 50],
  [[0, 10, 0, 0], 550],
  [[5, 5, 0, 0], 100],
  [[0, 0, 0, 10], 10_000],
])('the median of %j is %s ms', async (counts, median) => {
  const { clock, history, serve } = openHistory();
  for (const [bucket, count] of counts.entries()) {
    for (let n = 0; n < count; n++) serve('api', 200, bucket);
  }
  await clock.advance(INTERVAL_MS);
  expect(history.recent('api')?.p50).toBeCloseTo(median, 6);
});
