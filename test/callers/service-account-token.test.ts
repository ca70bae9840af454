import { generateKeyPairSync } from 'node:crypto';
import { expect, it } from 'vitest';
import { until } from '../support/until.ts';
import { FakeCluster } from './fake-cluster.ts';
import { startVerifying } from './verifying.ts';

/** The last letter of a signature of 64 octets stands for two bits: the four that follow say nothing. */
function withSpareBits(token: string): string {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return token.slice(0, -1) + letters[letters.indexOf(token.at(-1) as string) + 1];
}

const NONE = Buffer.from('{"alg":"none"}').toString('base64url');

it.each(['ES256', 'RS256'] as const)(
  'knows the pod and the service account of a token signed by %s',
  async (alg) => {
    const { cluster, verify } = await startVerifying(alg);
    const pod = cluster.pod('shop', 'web');
    expect(await verify(cluster.token(pod))).toEqual({
      kind: 'accepted',
      caller: {
        kind: 'service_account',
        namespace: 'shop',
        serviceAccount: 'web',
        pod: { name: 'web-0', uid: pod.uid },
      },
    });
  },
);

it('any flaw in a token is refused without asking the API server', async () => {
  const { cluster, verify, clock } = await startVerifying();
  const pod = cluster.pod('shop', 'web');
  const nowSeconds = Math.floor(clock.now().wallMs / 1000);
  const good = cluster.token(pod);
  const [, payload] = good.split('.') as [string, string];
  const own = cluster.claims(pod)['kubernetes.io'] as object;
  const stranger = {
    kid: cluster.keys[0]?.kid as string,
    alg: 'ES256' as const,
    ...generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  };

  const refused: readonly (readonly [string, string, string])[] = [
    ['nothing', '', 'malformed'],
    ['no JWT', 'open sesame', 'malformed'],
    ['two parts', 'a.b', 'malformed'],
    ['five parts, as of an encrypted one', 'a.b.c.d.e', 'malformed'],
    [
      'a header that is no JSON',
      `${Buffer.from('{"alg"').toString('base64url')}.${payload}.AAAA`,
      'malformed',
    ],
    ['more than a token has', `${good}${'A'.repeat(8192)}`, 'malformed'],
    ['alg none', `${NONE}.${payload}.`, 'malformed'],
    ['HS256 with the public key as its secret', cluster.hmacToken(pod), 'malformed'],
    [
      'an extension that must be understood',
      cluster.token(pod, { header: { crit: ['x'], x: 1 } }),
      'malformed',
    ],
    ['a signature cut short', good.slice(0, -2), 'signature'],
    ['padding', `${good}==`, 'malformed'],
    ['a blank in the signature', `${good.slice(0, -4)}\r\n${good.slice(-4)}`, 'malformed'],
    ['another text of the same signature', withSpareBits(good), 'malformed'],
    [
      'claims changed after signing',
      good.replace(payload, cluster.token(cluster.pod('shop', 'admin')).split('.')[1] as string),
      'signature',
    ],
    ["a stranger's key under the cluster's key id", cluster.token(pod, { key: stranger }), 'signature'],
    ['no key id', cluster.token(pod, { header: { kid: undefined } }), 'signature'],
    ['another issuer', cluster.token(pod, { claims: { iss: 'https://elsewhere.example' } }), 'issuer'],
    ['no issuer', cluster.token(pod, { claims: { iss: undefined } }), 'issuer'],
    [
      "the API server's audience",
      cluster.token(pod, { claims: { aud: ['https://kubernetes.default.svc'] } }),
      'audience',
    ],
    [
      'another audience beside ours',
      cluster.token(pod, { claims: { aud: ['vault', 'token-sidecar-broker'] } }),
      'audience',
    ],
    ['no audience', cluster.token(pod, { claims: { aud: undefined } }), 'audience'],
    ['an end that has come', cluster.token(pod, { claims: { exp: nowSeconds } }), 'expired'],
    ['an end long ago', cluster.token(pod, { claims: { exp: nowSeconds - 3600 } }), 'expired'],
    ['no end', cluster.token(pod, { claims: { exp: undefined } }), 'claims'],
    ['an end that is no number', cluster.token(pod, { claims: { exp: 'never' } }), 'claims'],
    ['a time that has not come', cluster.token(pod, { claims: { nbf: nowSeconds + 31 } }), 'not_yet_valid'],
    ['no claims of Kubernetes', cluster.token(pod, { claims: { 'kubernetes.io': undefined } }), 'claims'],
    [
      'a subject of another namespace',
      cluster.token(pod, { claims: { sub: 'system:serviceaccount:kube-system:web' } }),
      'claims',
    ],
    [
      'a subject that is no service account',
      cluster.token(pod, { claims: { sub: 'system:admin' } }),
      'claims',
    ],
    [
      'a namespace that is no text',
      cluster.token(pod, { claims: { 'kubernetes.io': { ...own, namespace: ['shop'] } } }),
      'claims',
    ],
    [
      'a pod without its uid',
      cluster.token(pod, { claims: { 'kubernetes.io': { ...own, pod: { name: 'web-0' } } } }),
      'claims',
    ],
  ];
  for (const [what, token, reason] of refused) {
    expect([what, await verify(token)]).toEqual([what, { kind: 'refused', reason }]);
  }
  expect(cluster.reviewed).toEqual([]);
});

it('only keys of the cluster are used, whatever a token says about its key', async () => {
  const { cluster, verify, clock } = await startVerifying();
  const pod = cluster.pod('shop', 'web');
  const [stranger] = (await FakeCluster.start(clock)).keys;
  if (stranger === undefined) throw new Error('a cluster has a key');
  const refused = [
    cluster.token(pod, { header: { kid: '../../etc/passwd' } }),
    cluster.token(pod, {
      key: stranger,
      header: { kid: 'own', jwk: stranger.publicKey.export({ format: 'jwk' }) },
    }),
    cluster.token(pod, { key: stranger, header: { kid: 'x', jku: 'https://evil.example/jwks' } }),
  ];
  for (const token of refused) {
    expect(await verify(token)).toEqual({ kind: 'unavailable', retryAfterMs: 10_000 });
    await clock.advance(10_000);
    expect(await verify(token)).toEqual({ kind: 'refused', reason: 'signature' });
  }
  expect(cluster.reviewed).toEqual([]);
});

it('clocks may differ by half a minute, but no token lives longer', async () => {
  const { cluster, verify, clock } = await startVerifying();
  const nowSeconds = Math.floor(clock.now().wallMs / 1000);
  const ahead = cluster.token(cluster.pod('shop', 'web'), {
    claims: { nbf: nowSeconds + 29, iat: nowSeconds + 29 },
  });
  expect(await verify(ahead)).toMatchObject({ kind: 'accepted' });

  const short = cluster.token(cluster.pod('shop', 'web'), { claims: { exp: nowSeconds + 20 } });
  expect(await verify(short)).toMatchObject({ kind: 'accepted' });
  await clock.advance(20_000);
  expect(await verify(short)).toMatchObject({
    kind: 'refused',
    reason: 'expired',
    caller: { namespace: 'shop', serviceAccount: 'web' },
  });
});

it('the token of another cluster with the same issuer and key id is refused', async () => {
  const { cluster, verify, clock } = await startVerifying();
  const kid = cluster.keys[0]?.kid as string;
  const others = [await FakeCluster.start(clock), await FakeCluster.start(clock, 'RS256', kid)];
  for (const other of others) {
    await clock.advance(10_000);
    expect(await verify(other.token(other.pod('shop', 'web')))).toEqual({
      kind: 'refused',
      reason: 'signature',
    });
  }
});

it('new keys are found, and removed ones forgotten', async () => {
  const { cluster, verify, clock, lines } = await startVerifying();
  const pod = cluster.pod('shop', 'web');
  const [oldKey] = cluster.keys;
  await cluster.rotate();
  // Keys were read just now: looking again so soon would be a tool in the hands of who makes up key ids. But the key may be
  // newer than that, and nothing is refused that may be good.
  await clock.advance(4000);
  expect(await verify(cluster.token(pod))).toEqual({ kind: 'unavailable', retryAfterMs: 6000 });
  await clock.advance(6000);
  expect(await verify(cluster.token(pod))).toMatchObject({ kind: 'accepted' });
  expect(await verify(cluster.token(pod, { key: oldKey as never }))).toMatchObject({ kind: 'accepted' });

  await cluster.dropOldKeys();
  const loaded = () => lines.filter((line) => line.includes("the cluster's keys are loaded")).length;
  await clock.advance(300_000);
  await until(() => loaded() === 3);
  const late = cluster.token(pod, { key: oldKey as never, claims: { jti: 'another' } });
  expect(await verify(late)).toEqual({ kind: 'refused', reason: 'signature' });
});

it('a key that may be newer than the last reading is not refused', async () => {
  const { cluster, verify, clock } = await startVerifying();
  const pod = cluster.pod('shop', 'web');
  await clock.advance(10_000);
  const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const before = cluster.api.answers.get('GET /openid/v1/jwks');
  cluster.api.answers.set('GET /openid/v1/jwks', async (body) => {
    asked.resolve();
    await answered.promise;
    return before?.(body) ?? { code: 500, value: {} };
  });
  const madeUp = verify(cluster.token(pod, { header: { kid: 'made-up' } }));
  await asked.promise;
  await cluster.rotate();
  await clock.advance(1000);
  const late = verify(cluster.token(pod));
  answered.resolve();
  expect(await madeUp).toEqual({ kind: 'refused', reason: 'signature' });
  expect(await late).toEqual({ kind: 'unavailable', retryAfterMs: 9000 });
  await clock.advance(9000);
  expect(await verify(cluster.token(pod))).toMatchObject({ kind: 'accepted' });
});

it('keys are read at most once in ten seconds, however many key ids are invented', async () => {
  const { cluster, verify, clock } = await startVerifying();
  const reads = () => cluster.api.requests.filter((line) => line === 'GET /openid/v1/jwks').length;
  await clock.advance(10_000);
  const pod = cluster.pod('shop', 'web');
  const flood = Array.from({ length: 200 }, (_, n) =>
    verify(cluster.token(pod, { header: { kid: `made-up-${n}` } })),
  );
  // The first has them read. Of the others nobody knows: each may have come since the reading began.
  const [first, ...others] = await Promise.all(flood);
  expect(first).toEqual({ kind: 'refused', reason: 'signature' });
  for (const verdict of others) expect(verdict).toEqual({ kind: 'unavailable', retryAfterMs: 10_000 });
  expect(reads()).toBe(2);
});

it('an unknown key while the API server is down is an undecided verdict', async () => {
  const { cluster, verify, clock } = await startVerifying();
  const pod = cluster.pod('shop', 'web');
  await cluster.rotate();
  await clock.advance(10_000);
  cluster.api.failNext(/openid\/v1\/jwks/, { status: 503 });
  expect(await verify(cluster.token(pod))).toMatchObject({ kind: 'unavailable' });
  // The failure is remembered, and costs the API server no other reading.
  expect(await verify(cluster.token(pod))).toMatchObject({ kind: 'unavailable' });
  await clock.advance(10_000);
  expect(await verify(cluster.token(pod))).toMatchObject({ kind: 'accepted' });
});

it('a known verdict is given at once until it is too old, with whether a review is due', async () => {
  const { cluster, verifier, clock } = await startVerifying();
  const token = cluster.token(cluster.pod('shop', 'web'));
  expect(verifier.known(token)).toBeUndefined();
  const verdict = await verifier.verify(token, '10.0.0.1');
  expect(verifier.known(token)).toEqual({ verdict, isDue: false });
  await clock.advance(60_000);
  expect(verifier.known(token)).toEqual({ verdict, isDue: true });
  await clock.advance(240_000);
  expect(verifier.known(token)).toBeUndefined();
});
