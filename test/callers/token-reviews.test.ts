import { expect, it } from 'vitest';
import { CROWD } from '../../src/callers/service-account-verifier.ts';
import { until } from '../support/until.ts';
import { volume } from '../support/volume.ts';
import { AUDIENCE, type FakeCluster } from './fake-cluster.ts';
import { startVerifying } from './verifying.ts';

const TOKEN_REVIEWS = /tokenreviews/;

/** Daily a tenth of what the product takes: that is a crowd, too. */
const SMALL_CROWD: typeof CROWD = {
  mostAtOnce: volume(CROWD.mostAtOnce / 10, CROWD.mostAtOnce),
  line: {
    ...CROWD.line,
    mostWaiting: volume(CROWD.line.mostWaiting / 10, CROWD.line.mostWaiting),
  },
};

it('the API server is asked once, and again after a minute', async () => {
  const { cluster, verify, clock } = await startVerifying();
  const token = cluster.token(cluster.pod('shop', 'web'));
  const all = await Promise.all(Array.from({ length: 100 }, () => verify(token)));
  expect(new Set(all.map(({ kind }) => kind))).toEqual(new Set(['accepted']));
  await clock.advance(59_999);
  await verify(token);
  expect(cluster.reviewed).toHaveLength(1);
  await clock.advance(1);
  expect(await verify(token)).toMatchObject({ kind: 'accepted' });
  expect(cluster.reviewed).toHaveLength(2);
});

it('the token of a deleted pod is refused, at the latest a minute after the deletion', async () => {
  const { cluster, verify, clock } = await startVerifying();
  const [gone, living] = [cluster.pod('shop', 'web', 'gone'), cluster.pod('shop', 'web', 'living')];
  cluster.deletePod(gone);
  expect(await verify(cluster.token(gone))).toMatchObject({
    kind: 'refused',
    reason: 'revoked',
    caller: { namespace: 'shop', serviceAccount: 'web' },
  });

  const token = cluster.token(living);
  expect(await verify(token)).toMatchObject({ kind: 'accepted' });
  cluster.deletePod(living);
  await clock.advance(60_000);
  expect(await verify(token)).toMatchObject({
    kind: 'refused',
    reason: 'revoked',
    caller: { namespace: 'shop', serviceAccount: 'web' },
  });
  // It stays so, at the price of a review in ten seconds.
  expect(await verify(token)).toMatchObject({
    kind: 'refused',
    reason: 'revoked',
    caller: { namespace: 'shop', serviceAccount: 'web' },
  });
  expect(cluster.reviewed.filter((one) => one === token)).toHaveLength(2);
  await clock.advance(10_000);
  expect(await verify(token)).toMatchObject({
    kind: 'refused',
    reason: 'revoked',
    caller: { namespace: 'shop', serviceAccount: 'web' },
  });
  expect(cluster.reviewed.filter((one) => one === token)).toHaveLength(3);
});

it('a review counts only for this audience, service account and pod', async () => {
  const { cluster, verify } = await startVerifying();
  const lies: readonly ((status: { user: object }) => object)[] = [
    (status) => ({ ...status, audiences: ['https://kubernetes.default.svc'] }),
    (status) => ({ ...status, audiences: [] }),
    (status) => ({ ...status, authenticated: false }),
    (status) => ({ ...status, authenticated: undefined }),
    (status) => ({ ...status, user: { ...status.user, username: 'system:serviceaccount:shop:admin' } }),
    (status) => ({ ...status, user: undefined }),
    (status) => ({
      ...status,
      user: { ...status.user, extra: { 'authentication.kubernetes.io/pod-uid': ['another'] } },
    }),
  ];
  for (const lie of lies) {
    cluster.review = (status) => ({ code: 201, value: { status: lie(status as { user: object }) } });
    const verdict = await verify(cluster.token(cluster.pod('shop', 'web')));
    expect(verdict).toMatchObject({
      kind: 'refused',
      reason: 'revoked',
      caller: { namespace: 'shop', serviceAccount: 'web' },
    });
  }
});

it.each([[403], [500], [429]])('a review answered with %i leaves the verdict undecided', async (status) => {
  const { cluster, verify, clock, lines } = await startVerifying();
  cluster.api.failNext(TOKEN_REVIEWS, { status });
  const token = cluster.token(cluster.pod('shop', 'web'));
  const verdict = await verify(token);
  expect(verdict).toMatchObject({ kind: 'unavailable' });
  // For a moment nobody asks; then the next one finds the API server back.
  expect(await verify(token)).toMatchObject({ kind: 'unavailable' });
  expect(cluster.reviewed).toHaveLength(0);
  await clock.advance(100);
  expect(await verify(token)).toMatchObject({ kind: 'accepted' });
  expect(lines.join('')).toContain('service account tokens cannot be reviewed');
});

it.each([
  ['1', 1000],
  ['3600', 2000],
])('asks nothing for as long as the API server says, %s s, and 2 s at most', async (retryAfter, pauseMs) => {
  const { cluster, verify, clock } = await startVerifying();
  cluster.api.failNext(TOKEN_REVIEWS, { status: 429, retryAfter });
  const token = cluster.token(cluster.pod('shop', 'web'));
  expect(await verify(token)).toMatchObject({ kind: 'unavailable', retryAfterMs: pauseMs });
  await clock.advance(pauseMs - 1);
  expect(await verify(token)).toMatchObject({ kind: 'unavailable' });
  expect(cluster.api.requests.filter((line) => TOKEN_REVIEWS.test(line))).toHaveLength(1);
  await clock.advance(1);
  expect(await verify(token)).toMatchObject({ kind: 'accepted' });
});

it('no token is logged, whatever the API server answers', async () => {
  const { cluster, verify, clock, lines } = await startVerifying();
  const token = cluster.token(cluster.pod('shop', 'web'));
  const odd = [
    { value: { spec: { token }, status: 'odd' } },
    { value: [token] },
    { value: undefined, text: token },
    { value: undefined, text: `{"spec": ${token}` },
  ];
  for (const answer of odd) {
    cluster.review = () => ({ code: 201, ...answer });
    expect(await verify(token)).toMatchObject({ kind: 'unavailable' });
    await clock.advance(2000);
  }
  cluster.api.failNext(TOKEN_REVIEWS, 'disconnect');
  expect(await verify(token)).toMatchObject({ kind: 'unavailable' });
  const parts = token.split('.');
  for (const part of parts) expect(lines.join('')).not.toContain(part.slice(0, 12));
  expect(lines.filter((line) => line.includes('cannot be reviewed')).length).toBeGreaterThan(2);
});

it('the last review counts for five minutes while the API server is down', async () => {
  const { cluster, verify, clock } = await startVerifying();
  const token = cluster.token(cluster.pod('shop', 'web'));
  expect(await verify(token)).toMatchObject({ kind: 'accepted' });
  cluster.review = () => ({ code: 500, value: {} });
  await clock.advance(60_000);
  expect(await verify(token)).toMatchObject({ kind: 'accepted' });
  // Whom it does not know it takes for nobody.
  expect(await verify(cluster.token(cluster.pod('shop', 'new')))).toMatchObject({ kind: 'unavailable' });
  await clock.advance(240_000);
  expect(await verify(token)).toMatchObject({ kind: 'unavailable' });
  cluster.review = undefined;
  await clock.advance(2000);
  expect(await verify(token)).toMatchObject({ kind: 'accepted' });
});

it('a slow review is waited for a second if an older one exists, and counts when it arrives', async () => {
  const { cluster, verify, clock } = await startVerifying();
  const pod = cluster.pod('shop', 'web');
  const token = cluster.token(pod);
  expect(await verify(token)).toMatchObject({ kind: 'accepted' });
  await clock.advance(60_000);
  const { promise, resolve } = Promise.withResolvers<void>();
  cluster.api.failNext(TOKEN_REVIEWS, { until: promise });
  cluster.deletePod(pod);
  const verdict = verify(token);
  await clock.advance(1000);
  expect(await verdict).toMatchObject({ kind: 'accepted' });
  resolve();
  await until(() => cluster.reviewed.length === 2);
  for (;;) {
    const again = verify(token);
    await clock.advance(1000);
    if ((await again).kind === 'refused') break;
  }
});

it('a rollout of two thousand pods has room', () => {
  expect(CROWD).toEqual({ mostAtOnce: 2000, line: { atOnce: 16, mostWaiting: 4000, timeoutMs: 3000 } });
});

/** As many reviews as there may be at once are answered when `resolve` is called. */
function hang({ api }: FakeCluster, { line }: typeof CROWD) {
  const { promise, resolve } = Promise.withResolvers<void>();
  const asked = () => api.requests.filter((request) => TOKEN_REVIEWS.test(request)).length;
  const before = asked();
  for (let n = 0; n < line.atOnce; n++) api.failNext(TOKEN_REVIEWS, { until: promise });
  return { resolve, allAsked: () => until(() => asked() === before + line.atOnce) };
}

it('reviews of one namespace run in turn, and a full queue makes room for a namespace with fewer', async () => {
  const crowd = { ...SMALL_CROWD, line: { ...SMALL_CROWD.line, mostWaiting: 100 } };
  const { cluster, verify, clock } = await startVerifying('ES256', crowd);
  const { resolve, allAsked } = hang(cluster, crowd);
  let turnedAway = 0;
  const flood = Array.from({ length: crowd.line.atOnce + crowd.line.mostWaiting + 20 }, async (_, n) => {
    const { kind } = await verify(cluster.token(cluster.pod('flood', 'web', `web-${n}`)));
    if (kind === 'unavailable') turnedAway++;
  });
  await allAsked();
  await until(() => turnedAway === 20);
  const other = cluster.token(cluster.pod('quiet', 'web'));
  const verdict = verify(other);
  await until(() => turnedAway === 21);
  resolve();
  expect(await verdict).toMatchObject({ kind: 'accepted' });
  expect(cluster.reviewed.indexOf(other)).toBeLessThan(40);
  await Promise.all(flood);
  expect(turnedAway).toBe(21);
  expect(clock.pendingTimers).toBeLessThan(5);
});

it('if the queue is full, the address with most reviews makes room, and known verdicts stay', async () => {
  const { cluster, verify, clock } = await startVerifying('ES256', SMALL_CROWD);
  const { mostAtOnce } = SMALL_CROWD;
  const known = cluster.token(cluster.pod('shop', 'known'));
  expect(await verify(known)).toMatchObject({ kind: 'accepted' });
  await clock.advance(60_000);
  const { resolve, allAsked } = hang(cluster, SMALL_CROWD);
  const unknown = (n: number) => cluster.token(cluster.pod(`team-${n % 10}`, 'web', `web-${n}`));
  let turnedAway = 0;
  const flood = Array.from({ length: mostAtOnce }, async (_, n) => {
    const { kind } = await verify(unknown(n), `10.0.0.${n % 4}`);
    if (kind === 'unavailable') turnedAway++;
  });
  await allAsked();
  expect(await verify(unknown(mostAtOnce), '10.0.0.1')).toEqual({ kind: 'unavailable', retryAfterMs: 1000 });
  expect(await verify(known, '10.0.0.1')).toMatchObject({ kind: 'accepted' });
  expect(turnedAway).toBe(0);
  const other = verify(cluster.token(cluster.pod('shop', 'web')), '10.0.1.1');
  await until(() => turnedAway === 1);
  resolve();
  expect(await other).toMatchObject({ kind: 'accepted' });
  await Promise.all(flood);
  expect(clock.pendingTimers).toBeLessThan(5);
}, 60_000);

it('a legacy service account token without expiry and audience is refused', async () => {
  const { cluster, verify } = await startVerifying();
  const pod = cluster.pod('shop', 'web');
  const legacy = cluster.token(pod, {
    claims: { aud: undefined, exp: undefined, 'kubernetes.io/serviceaccount/namespace': 'shop' },
  });
  expect(await verify(legacy)).toMatchObject({ kind: 'refused' });
  expect(await verify(cluster.token(pod, { claims: { aud: AUDIENCE } }))).toMatchObject({ kind: 'accepted' });
});
