import { writeFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { SECRETS, secret } from '../../broker/running-broker.ts';
import { createCertificateAuthority } from '../../support/certificate-authority.ts';
import { answer, answerToken } from '../../support/scripted-token-endpoint.ts';
import { authority, mount, newKey, operate, runWithCache, startShop, stored, USERS } from './brokers.ts';
import { type RedisOptions, startRedis } from './redis.ts';

const secured = (): RedisOptions => ({
  tls: { ...authority.issue('redis', '127.0.0.1', 'localhost'), ca: authority.cert },
  users: USERS,
});

it('two replicas make one grant, over TLS, as a user with no more rights than it takes', async () => {
  const redis = await startRedis(secured());
  const world = await startShop('one');
  const mounted = await mount();
  const first = await runWithCache(world, redis, mounted);
  const second = await runWithCache(world, redis, mounted);
  expect(await first.metric('connected')).toBe(1);
  const token = await first.token('one');
  const client = await operate(redis);
  await stored(client, 1);
  expect(await second.token('one')).toBe(token);
  expect(world.provider.received).toHaveLength(1);
  expect([await first.looks(), await second.looks()]).toEqual([{ miss: 1 }, { hit: 1 }]);
  // A replica that comes later finds it, too.
  const third = await runWithCache(world, redis, mounted);
  expect(await third.token('one')).toBe(token);
  expect(world.provider.received).toHaveLength(1);
});

it('nothing of a token, a secret or a name can be read in the store, and it all ends with the token', async () => {
  const redis = await startRedis(secured());
  const world = await startShop('one');
  const broker = await runWithCache(world, redis, await mount());
  const token = await broker.token('one');
  const client = await operate(redis);
  await stored(client, 1);
  const [name = ''] = await client.keys('*');
  expect(name).toMatch(/^token-sidecar:broker:1:[\w-]{43}$/);
  const value = (await client.get(name)) as string;
  for (const text of [name, value, Buffer.from(value, 'base64').toString('latin1')]) {
    for (const part of [token, 's3cret', 'shop', 'one']) expect(text).not.toContain(part);
  }
  const leftMs = await client.pTTL(name);
  expect(leftMs).toBeGreaterThan(290_000);
  expect(leftMs).toBeLessThanOrEqual(300_000);
});

it('of replicas that are asked at once, one asks the provider and the others wait for it', async () => {
  const redis = await startRedis(secured());
  const world = await startShop('one');
  const asked = Promise.withResolvers<void>();
  const give = answerToken();
  world.provider.script = (response, request) => void asked.promise.then(() => give(response, request));
  const mounted = await mount();
  const brokers = [
    await runWithCache(world, redis, mounted),
    await runWithCache(world, redis, mounted),
    await runWithCache(world, redis, mounted),
  ];
  const tokens = Promise.all(brokers.map(({ token }) => token('one')));
  await world.provider.requests(1);
  // The claim of who asks, which the others have met.
  const client = await operate(redis);
  const claims = async () => (await client.info('commandstats')).match(/cmdstat_set:calls=(\d+)/)?.[1];
  while (Number(await claims()) < 3);
  asked.resolve();
  expect(await tokens).toEqual(['token-1', 'token-1', 'token-1']);
  expect(world.provider.received).toHaveLength(1);
  const looks = await Promise.all(brokers.map(({ looks }) => looks()));
  const results = looks.map((one) => Object.keys(one).join()).sort();
  expect(results).toEqual([
    expect.stringMatching(/^(hit|miss)$/),
    expect.stringMatching(/^(miss|waited)$/),
    'waited',
  ]);
  expect(results.filter((result) => result === 'miss')).toHaveLength(1);
  // The claim is given back.
  await stored(client, 1);
});

it('what the provider refuses is not kept, and the next replica asks at once', async () => {
  const redis = await startRedis(secured());
  const world = await startShop('one');
  const mounted = await mount();
  const brokers = [await runWithCache(world, redis, mounted), await runWithCache(world, redis, mounted)];
  world.provider.script = answer(401, '{"error":"invalid_client"}');
  for (const { token } of brokers) await expect(token('one')).rejects.toThrow('temporarily_unavailable');
  expect(world.provider.received).toHaveLength(2);
  const client = await operate(redis);
  await stored(client, 0);
});

it('killed and started again meanwhile: no request fails, and while it is away each replica asks by itself', async () => {
  const redis = await startRedis(secured());
  const world = await startShop('before', 'away', 'back');
  const mounted = await mount();
  const brokers = [await runWithCache(world, redis, mounted), await runWithCache(world, redis, mounted)];
  let ended = false;
  let answered = 0;
  /** Rejects with the first that fails. */
  const asking = Promise.all(
    brokers.map(async ({ token }) => {
      while (!ended) {
        await token('before');
        answered += 1;
      }
    }),
  );
  const grants = () => world.provider.received.length;
  for (const { token } of brokers) await token('before');
  expect(grants()).toBe(1);

  await redis.kill();
  for (const { token } of brokers) await token('away');
  expect(grants()).toBe(3);
  for (const broker of brokers) {
    expect(await broker.logged(({ msg }) => String(msg).startsWith('the token cache is away'))).toMatchObject(
      {
        level: 'warn',
        reason: 'unreachable',
      },
    );
    expect(await broker.metric('connected')).toBe(0);
    expect(await broker.looks()).toMatchObject({ away: 1 });
  }

  await redis.start();
  for (const { connected } of brokers) await connected(2);
  const tokens = [await brokers[0]?.token('back')];
  const client = await operate(redis);
  await stored(client, 1);
  tokens.push(await brokers[1]?.token('back'));
  expect(grants()).toBe(4);
  expect(tokens[0]).toBe(tokens[1]);
  ended = true;
  await asking;
  expect(answered).toBeGreaterThan(10);
});

it('killed while a replica waits for the grant of another: it asks by itself', async () => {
  const redis = await startRedis(secured());
  const world = await startShop('one');
  const asked = Promise.withResolvers<void>();
  const give = answerToken();
  world.provider.script = (response, request) => void asked.promise.then(() => give(response, request));
  const mounted = await mount();
  const [first, second] = [
    await runWithCache(world, redis, mounted),
    await runWithCache(world, redis, mounted),
  ];
  const one = first.token('one');
  await world.provider.requests(1);
  const other = second.token('one');
  const client = await operate(redis);
  const claims = async () => (await client.info('commandstats')).match(/cmdstat_set:calls=(\d+)/)?.[1];
  while (Number(await claims()) < 2);
  await redis.kill();
  await world.provider.requests(2);
  asked.resolve();
  expect([await one, await other].sort()).toEqual(['token-1', 'token-2']);
});

it('stalled, it costs one grant its time, and those after it nothing', async () => {
  const redis = await startRedis(secured());
  const world = await startShop('one', 'two');
  const broker = await runWithCache(world, redis, await mount(), { 'cache-timeout': '100ms' });
  redis.stall();
  const beganAt = performance.now();
  await broker.token('one');
  expect(performance.now() - beganAt).toBeGreaterThan(95);
  expect(await broker.logged(({ reason }) => reason === 'timeout')).toMatchObject({
    detail: 'no answer within 100 ms',
  });
  await broker.token('two');
  expect(await broker.looks()).toEqual({ away: 2 });
  expect(await broker.metric('failures_total\\{reason="timeout"\\}')).toBeGreaterThanOrEqual(1);
  redis.resume();
  await broker.connected(2);
});

it('a server whose certificate is of another CA is told nothing', async () => {
  const redis = await startRedis(secured());
  const world = await startShop('one');
  const mounted = await mount({ ca: createCertificateAuthority('another').cert });
  const broker = await runWithCache(world, redis, mounted);
  expect(await broker.logged(({ reason }) => reason === 'tls')).toMatchObject({ level: 'warn' });
  await broker.token('one');
  expect(await broker.looks()).toEqual({ away: 1 });
  const client = await operate(redis);
  expect(await client.dbSize()).toBe(0);
  expect(await client.info('stats')).not.toMatch(/cmdstat_auth/);
  // The right one takes its place without a restart.
  await writeFile(mounted.path('ca', 'ca.crt'), authority.cert);
  await broker.connected(1);
});

it('a wrong password is named, and the right one is taken as soon as it is there', async () => {
  const redis = await startRedis(secured());
  const world = await startShop('one');
  const right = await mount();
  const wrong = await mount({ password: 'not-this-one', current: right.current });
  const broker = await runWithCache(world, redis, wrong);
  const line = await broker.logged(({ reason }) => reason === 'refused');
  expect(line).toMatchObject({ detail: 'it refuses our user and password (WRONGPASS)' });
  expect(JSON.stringify(broker.seen)).not.toContain('not-this-one');
  await broker.token('one');
  await writeFile(wrong.path('auth', 'password'), 'pass-of-the-cache');
  await broker.connected(1);
});

it('a user without the rights is named', async () => {
  const redis = await startRedis({
    ...secured(),
    users: ['user broker on >pass-of-the-cache ~other:* -@all +pttl +getrange +set +del'],
  });
  const broker = await runWithCache(await startShop('one'), redis, await mount());
  expect(await broker.logged(({ reason }) => reason === 'refused')).toMatchObject({
    detail: expect.stringContaining('our user lacks a right') as string,
  });
  await broker.token('one');
});

it('a value that was changed, or is none of ours, is passed over and written anew', async () => {
  const redis = await startRedis(secured());
  const world = await startShop('one');
  const mounted = await mount();
  await (await runWithCache(world, redis, mounted)).token('one');
  const client = await operate(redis);
  await stored(client, 1);
  const [name = ''] = await client.keys('*');
  const value = (await client.get(name)) as string;
  const bytes = Buffer.from(value, 'base64');
  bytes[bytes.length - 1] = (bytes.at(-1) as number) ^ 1;
  const put = (text: string) => () => client.set(name, text, { PX: 300_000 });
  const foreign = [
    put(bytes.toString('base64')),
    put(value.slice(0, 40)),
    put('{"access_token":"planted"}'),
    put('x'.repeat(1_000_000)),
    // As good as it was, but without end.
    () => client.set(name, value),
    async () => {
      await client.del(name);
      await client.rPush(name, 'a list');
    },
  ];
  for (const [index, plant] of foreign.entries()) {
    await plant();
    const broker = await runWithCache(world, redis, mounted);
    expect(await broker.token('one')).toBe(`token-${index + 2}`);
    expect(await broker.looks()).toEqual({ invalid: 1 });
    while ((await client.type(name)) !== 'string' || (await client.pTTL(name)) < 0);
    broker.stop();
    await broker.status;
  }
}, 60_000);

it('the value of another credential under this name is passed over', async () => {
  const redis = await startRedis(secured());
  const world = await startShop('one', 'two');
  const mounted = await mount();
  const first = await runWithCache(world, redis, mounted);
  await first.token('one');
  const client = await operate(redis);
  await stored(client, 1);
  const [one = ''] = await client.keys('*');
  await first.token('two');
  await stored(client, 2);
  const two = (await client.keys('*')).find((name) => name !== one) as string;
  await client.copy(one, two, { REPLACE: true });
  const second = await runWithCache(world, redis, mounted);
  expect(await second.token('two')).toBe('token-3');
  expect(await second.looks()).toEqual({ invalid: 1 });
});

it('a token that is near its end is not taken', async () => {
  const redis = await startRedis(secured());
  const world = await startShop('one');
  const mounted = await mount();
  await (await runWithCache(world, redis, mounted)).token('one');
  const client = await operate(redis);
  await stored(client, 1);
  const [name = ''] = await client.keys('*');
  await client.pExpire(name, 100_000);
  const second = await runWithCache(world, redis, mounted);
  expect(await second.token('one')).toBe('token-2');
  expect(await second.looks()).toEqual({ old: 1 });
  // The new one has taken its place.
  while ((await client.pTTL(name)) < 200_000);
  expect(await (await runWithCache(world, redis, mounted)).token('one')).toBe('token-2');
});

it('a key is rotated without a grant for it: what the previous one has sealed is read', async () => {
  const redis = await startRedis(secured());
  const world = await startShop('one');
  const [before, after] = [newKey(), newKey()];
  const first = await runWithCache(world, redis, await mount({ current: before }));
  const token = await first.token('one');
  const client = await operate(redis);
  await stored(client, 1);
  const rotated = await mount({ current: after, previous: before });
  expect(await (await runWithCache(world, redis, rotated)).token('one')).toBe(token);
  expect(world.provider.received).toHaveLength(1);
  const without = await runWithCache(world, redis, await mount({ current: after }));
  expect(await without.token('one')).toBe('token-2');
  expect(await without.looks()).toEqual({ miss: 1 });
});

it('another client secret, and another scope, find nothing of the old ones', async () => {
  const redis = await startRedis(secured());
  const world = await startShop('one');
  const mounted = await mount();
  const first = await runWithCache(world, redis, mounted);
  await first.token('one');
  const client = await operate(redis);
  await stored(client, 1);
  first.stop();
  await first.status;
  world.putProfile('one', { ...world.spec, credentials: [{ ...world.credential, scope: 'read' }] });
  const second = await runWithCache(world, redis, mounted);
  expect(await second.token('one')).toBe('token-2');
  await stored(client, 2);
  world.cluster.api.put(SECRETS, {
    metadata: { name: 'oauth' },
    data: secret({ client_id: 'shop', client_secret: 'rotated' }),
  });
  await world.provider.requests(3);
  expect(await second.looks()).toEqual({ miss: 2 });
  expect(world.provider.received.map(({ form }) => [form.get('client_secret'), form.get('scope')])).toEqual([
    ['s3cret', null],
    ['s3cret', 'read'],
    ['rotated', 'read'],
  ]);
});
