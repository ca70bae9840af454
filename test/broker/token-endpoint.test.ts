import { expect, it } from 'vitest';
import { createTokenEndpoint, OF_ONE_CALLER } from '../../src/broker/token-endpoint.ts';
import { createLogger } from '../../src/platform/log/logger.ts';
import { systemClock } from '../../src/platform/time/clock.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { answer, answerToken } from '../support/scripted-token-endpoint.ts';
import { ShiftedClock } from '../support/shifted-clock.ts';
import { volume } from '../support/volume.ts';
import { formOf, NAMESPACES, runBroker, startWorld } from './running-broker.ts';

type TokenEndpointOptions = Parameters<typeof createTokenEndpoint>[0];

const FROM = '10.0.0.1';

const DECISION_MS = 8000;

it("the provider's token is returned with its remaining lifetime", async () => {
  const world = await startWorld();
  const { askAs } = await runBroker(world);
  const answered = await askAs(world.cluster.pod('shop', 'web'));
  expect(answered).toMatchObject({
    status: 200,
    body: { access_token: 'token-1', token_type: 'Bearer' },
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
  });
  expect(answered.body.expires_in).toBeGreaterThan(290);
  expect(answered.body.expires_in).toBeLessThan(300);
  const [grant] = world.provider.received;
  expect(Object.fromEntries(grant?.form ?? [])).toEqual({
    grant_type: 'client_credentials',
    client_id: 'shop',
    client_secret: 's3cret',
  });
});

it('the provider is asked once, however many pods ask', async () => {
  const world = await startWorld();
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  const give = answerToken();
  world.provider.script = (response, request) => void held.then(() => give(response, request));
  const { askAs } = await runBroker(world);
  const pods = Array.from({ length: volume(20, 1000) }, (_, n) =>
    world.cluster.pod('shop', 'web', `web-${n}`),
  );
  /** As sidecars do. */
  const askUntilGiven = async (pod: (typeof pods)[number]) => {
    for (;;) {
      const answered = await askAs(pod);
      if (answered.status !== 503) return answered;
    }
  };
  const answers = Promise.all(pods.map(askUntilGiven));
  await world.provider.requests(1);
  release();
  const statuses = (await answers).map(({ status, body }) => `${status} ${body.access_token}`);
  expect(new Set(statuses)).toEqual(new Set(['200 token-1']));
  expect(world.provider.received).toHaveLength(1);
}, 60_000);

it('another namespace, another service account and what no profile allows are denied', async () => {
  const world = await startWorld();
  const { cluster, putProfile, spec } = world;
  putProfile('narrow', { ...spec, serviceAccounts: ['web'] });
  putProfile('closed', { ...spec, namespaces: undefined });
  putProfile('labelled', { ...spec, namespaces: { selector: { matchLabels: { team: 'shop' } } } });
  putProfile('own', { ...spec, credentials: [{ ...world.credential, via: 'sidecar' }] });
  putProfile('broken', { ...spec, credentials: [{ ...world.credential, clientAuth: 'magic' }] });
  cluster.api.put(NAMESPACES, { metadata: { name: 'shop', labels: { team: 'shop' } } });
  cluster.api.put(NAMESPACES, { metadata: { name: 'other', labels: { team: 'other' } } });
  const { askAs } = await runBroker(world);
  const web = cluster.pod('shop', 'web');
  const batch = cluster.pod('shop', 'batch');
  const stranger = cluster.pod('other', 'web');
  const at = async (pod: typeof web, name: string) => {
    const { status, body } = await askAs(pod, { path: `/token/${name}/${name}` });
    return status === 200 ? 'given' : `${status} ${body.error}`;
  };
  const denied = '400 unauthorized_client';
  expect(await at(web, 'payments')).toBe('given');
  expect(await at(batch, 'payments')).toBe('given');
  expect(await at(stranger, 'payments')).toBe(denied);
  expect(await at(web, 'narrow')).toBe('given');
  expect(await at(batch, 'narrow')).toBe(denied);
  expect(await at(web, 'closed')).toBe(denied);
  expect(await at(web, 'labelled')).toBe('given');
  expect(await at(stranger, 'labelled')).toBe(denied);
  // What is not the broker's, is broken or does not exist looks alike to who asks.
  for (const name of ['own', 'broken', 'unknown']) expect(await at(web, name)).toBe(denied);
});

it('only one path, form and credential is accepted, and anything ambiguous is refused', async () => {
  const world = await startWorld();
  const { cluster } = world;
  world.putProfile('admin', { ...world.spec, namespaces: { names: ['kube-system'] } });
  const { ask } = await runBroker(world);
  const token = cluster.token(cluster.pod('shop', 'web'));
  const path = (text: string) => ({ path: text });
  const cases: readonly (readonly [object, string])[] = [
    [path('/token/payments/../admin'), '404 not_found'],
    [path('/token/payments%2Fadmin/admin'), '404 not_found'],
    [path('/token/%61dmin/admin'), '404 not_found'],
    [path('/token/payments/payments?profile=admin'), '404 not_found'],
    [path('/token/payments/payments/'), '404 not_found'],
    [path('/token//payments'), '404 not_found'],
    [path('/token/./payments'), '404 not_found'],
    [path('/token/payments/payments;admin'), '404 not_found'],
    [path('/token/Payments/payments'), '404 not_found'],
    [path('https://broker/token/payments/payments'), '404 not_found'],
    [path('/token/__proto__/constructor'), '404 not_found'],
    [path('/token/constructor/constructor'), '400 unauthorized_client'],
    [{ method: 'GET', body: '' }, '405 method_not_allowed'],
    [{ method: 'PUT' }, '405 method_not_allowed'],
    [{ headers: { 'content-type': 'application/json' } }, '415 unsupported_media_type'],
    [{ headers: { 'content-encoding': 'gzip' } }, '415 unsupported_media_type'],
    [{ headers: { authorization: `Bearer ${token}` } }, '400 invalid_request'],
    [{ form: { client_secret: 'x' } }, '400 invalid_request'],
    [{ form: { client_assertion_type: 'jwt' } }, '400 invalid_request'],
    [{ form: { client_assertion: undefined } }, '400 invalid_request'],
    [{ form: { client_assertion: '' } }, '400 invalid_request'],
    [{ form: { grant_type: 'password' } }, '400 unsupported_grant_type'],
    [{ form: { scope: 'admin' } }, '400 invalid_scope'],
    [{ form: { audience: 'other' } }, '400 invalid_target'],
    [{ form: { resource: 'https://other' } }, '400 invalid_target'],
    [{ form: { client_id: 'system:serviceaccount:shop:admin' } }, '401 invalid_client'],
    [{ form: { client_assertion: 'a.b.c' } }, '401 invalid_client'],
    [{ body: `${formOf(token)}&client_assertion=x` }, '400 invalid_request'],
    [{ body: `${formOf(token)}&%zz=1` }, '400 invalid_request'],
  ];
  for (const [asking, expected] of cases) {
    const { status, body } = await ask(token, asking);
    expect([asking, `${status} ${body.error}`]).toEqual([asking, expected]);
  }
  const right = await ask(token, { form: { client_id: 'system:serviceaccount:shop:web' } });
  expect(right.status).toBe(200);
});

it('the caller is identified by its token alone, whatever other fields say', async () => {
  const world = await startWorld();
  const { cluster } = world;
  const { ask } = await runBroker(world);
  const headers = {
    'x-remote-user': 'system:serviceaccount:shop:web',
    'x-forwarded-for': '127.0.0.1',
    'x-forwarded-client-cert': 'URI=spiffe://cluster.local/ns/shop/sa/web',
    'token-sidecar-caller': cluster.token(cluster.pod('shop', 'web')),
    'proxy-authorization': `Bearer ${cluster.token(cluster.pod('shop', 'web'))}`,
  };
  const stranger = cluster.token(cluster.pod('other', 'web'));
  expect((await ask(stranger, { headers })).body.error).toBe('unauthorized_client');
  expect((await ask('none.at.all', { headers })).body.error).toBe('invalid_client');
});

it('the token of a deleted pod or of another cluster is refused', async () => {
  const world = await startWorld();
  const { cluster } = world;
  const { askAs } = await runBroker(world);
  const pod = cluster.pod('shop', 'web');
  cluster.deletePod(pod);
  expect(await askAs(pod)).toMatchObject({ status: 401, body: { error: 'invalid_client' } });
});

/** The same with another signature. */
const forged = (token: string): string => `${token.slice(0, -8)}AAAAAAAA`;

it('each decision has a log line, and none has a token or secret', async () => {
  const world = await startWorld();
  const { cluster } = world;
  world.putProfile('fresh', world.spec);
  const { ask, seen } = await runBroker(world);
  const good = cluster.token(cluster.pod('shop', 'web'));
  const denied = cluster.token(cluster.pod('other', 'web'));
  await ask(good);
  await ask(denied);
  await ask(forged(good));
  // A provider that repeats what it was sent, of a credential that has no token yet.
  world.provider.script = answer(400, '{"error":"invalid_client","error_description":"not s3cret"}');
  const late = cluster.token(cluster.pod('shop', 'late'));
  const refused = await ask(late, { path: '/token/fresh/fresh' });
  expect(refused).toMatchObject({
    status: 503,
    headers: { connection: 'close' },
    body: { error: 'temporarily_unavailable' },
  });
  expect(world.provider.received).toHaveLength(2);
  const lines = seen.filter(({ msg }) => msg === 'token given' || msg === 'token not given');
  const who = {
    namespace: 'shop',
    serviceAccount: 'web',
    pod: 'web-0',
    profile: 'payments',
    credential: 'payments',
  };
  expect(lines).toMatchObject([
    { ...who, level: 'info', result: 'given' },
    { ...who, namespace: 'other', level: 'warn', result: 'unauthorized_client' },
    { profile: 'payments', level: 'warn', result: 'invalid_client', reason: 'signature' },
    { serviceAccount: 'late', profile: 'fresh', level: 'warn', result: 'temporarily_unavailable' },
  ]);
  expect(seen).toContainEqual(
    expect.objectContaining({ msg: 'no token obtained', detail: 'status 400 invalid_client: not […]' }),
  );
  const text = JSON.stringify(seen);
  for (const token of [good, denied, late])
    for (const part of token.split('.')) expect(text).not.toContain(part);
  for (const hidden of ['token-1', 's3cret']) expect(text).not.toContain(hidden);
});

it('each refusal of a verified caller has a log line, however many are alike', async () => {
  const world = await startWorld();
  const { cluster } = world;
  const { ask, seen } = await runBroker(world);
  const stranger = cluster.token(cluster.pod('other', 'web'));
  for (let n = 0; n < 15; n++) await ask(stranger);
  for (let n = 0; n < 15; n++) await ask(forged(stranger));
  const gone = cluster.pod('shop', 'gone');
  cluster.deletePod(gone);
  await ask(cluster.token(gone));
  const refused = (facts: object) =>
    seen.filter((line) => Object.entries(facts).every(([key, value]) => line[key] === value));
  expect(refused({ msg: 'token not given', result: 'unauthorized_client' })).toHaveLength(15);
  expect(refused({ msg: 'token not given', reason: 'signature' })).toHaveLength(1);
  expect(refused({ reason: 'revoked' })).toMatchObject([{ namespace: 'shop', serviceAccount: 'gone' }]);
});

it('a slow dependency is answered with an error before sidecars time out, and the log names the caller', async () => {
  const lines: object[] = [];
  const log = createLogger('info', { write: (line) => void lines.push(JSON.parse(line) as object) });
  const caller = { kind: 'service_account', namespace: 'shop', serviceAccount: 'web' } as const;
  const never = new Promise<never>(() => undefined);
  const endpointOf = (verify: TokenEndpointOptions['verify'], grant: () => Promise<never>) =>
    createTokenEndpoint({
      verify,
      credentials: { unread: () => undefined, find: () => ({ config: {} }) as never, now: () => undefined },
      grants: { answer: grant, size: 0, close: () => Promise.resolve() },
      clock: systemClock,
      log,
    });
  const askedFrom = new Set<string>();
  const accepted: TokenEndpointOptions['verify'] = (_token, from) => {
    askedFrom.add(from);
    return Promise.resolve({ kind: 'accepted', caller });
  };
  const address = { kind: 'address', profile: 'payments', credential: 'payments' } as const;
  const body = Buffer.from(formOf('a.b.c'));
  const begun = () => systemClock.monotonicMs() - DECISION_MS + 20;
  const busy = { kind: 'refused', code: 'temporarily_unavailable' };
  expect(
    await endpointOf(
      () => never,
      () => never,
    )(address, body, begun(), FROM),
  ).toMatchObject(busy);
  expect(await endpointOf(accepted, () => never)(address, body, begun(), FROM)).toMatchObject(busy);
  const broken = endpointOf(accepted, () => Promise.reject(new Error('no directory')));
  const answered = await broken(address, body, systemClock.monotonicMs(), FROM);
  expect(answered).toMatchObject({ code: 'server_error' });
  expect([...askedFrom]).toEqual([FROM]);
  const who = { namespace: 'shop', serviceAccount: 'web', msg: 'token not given' };
  expect(lines).toMatchObject([
    { result: 'temporarily_unavailable' },
    { ...who, result: 'temporarily_unavailable' },
    { msg: 'a request failed' },
    { ...who, result: 'server_error' },
  ]);
});

it('a failure after the answer is logged', async () => {
  const { log, lines } = captureLog();
  const clock = new ManualClock();
  const grant = Promise.withResolvers<never>();
  const endpoint = createTokenEndpoint({
    verify: () =>
      Promise.resolve({
        kind: 'accepted',
        caller: { kind: 'service_account', namespace: 'shop', serviceAccount: 'web' },
      }),
    credentials: { unread: () => undefined, find: () => ({ config: {} }) as never, now: () => undefined },
    grants: { answer: () => grant.promise, size: 0, close: () => Promise.resolve() },
    clock,
    log,
  });
  const address = { kind: 'address', profile: 'payments', credential: 'payments' } as const;
  const answered = endpoint(address, Buffer.from(formOf('a.b.c')), clock.monotonicMs(), FROM);
  await clock.advance(DECISION_MS);
  expect(await answered).toMatchObject({ code: 'temporarily_unavailable' });
  expect(lines.join('')).not.toContain('failed after its answer');
  grant.reject(new Error('the disk is full'));
  await clock.advance(0);
  expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
    { msg: 'token not given', serviceAccount: 'web' },
    {
      level: 'error',
      profile: 'payments',
      credential: 'payments',
      msg: 'what a request had begun failed after its answer',
    },
  ]);
  expect(lines[1]).toContain('the disk is full');
});

it('a caller that asks all the time does not harm others', async () => {
  const clock = new ShiftedClock();
  const world = await startWorld(undefined, clock);
  const { cluster } = world;
  const { ask, askAs } = await runBroker(world);
  const token = cluster.token(cluster.pod('shop', 'loop'));
  clock.stop();
  const statuses: number[] = [];
  for (let n = 0; n < OF_ONE_CALLER.burst + 10; n++) {
    const { status, headers } = await ask(token);
    statuses.push(status);
    if (status === 429) expect(headers['retry-after']).toBe('1');
  }
  expect(statuses).toContain(429);
  expect((await askAs(cluster.pod('shop', 'web'))).status).toBe(200);
});
