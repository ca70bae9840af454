/** What can happen to a mounted Secret under a running pod. */

import { mkdir, rename, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { layOutSecret } from '../../src/platform/mounted/secret-layout.ts';
import { MAX_GRANTS_PER_MINUTE, mostInAnyMinute } from './designed-grants.ts';
import { describeAnswers, record, seconds } from './matrix.ts';
import { World } from './world.ts';

export interface SecretFault {
  readonly name: string;
  /** What `credentials_reload_total` and the status page call it. */
  readonly state: 'missing' | 'empty' | 'unreadable';
  readonly breaks: (world: World) => Promise<unknown>;
}

const id = { client_id: 'shop' };

/** The version's file is replaced by something that cannot be read, root or not, and the version swapped in as one. */
async function swapInUnreadable(world: World, target: string): Promise<void> {
  const { directory } = world.secret;
  await rm(join(directory, 'client_secret'));
  // A volume may also be laid out without `..data`.
  await symlink(target, join(directory, 'client_secret'));
  await rename(join(directory, '..data'), join(directory, '..set-aside'));
  await rm(join(directory, 'client_id'));
  await symlink(join('..set-aside', 'client_id'), join(directory, 'client_id'));
}

export const SECRET_FAULTS: readonly SecretFault[] = [
  {
    name: 'Secret removed',
    state: 'missing',
    breaks: ({ secret }) => rm(join(secret.directory, '..data')),
  },
  {
    name: 'Secret emptied',
    state: 'empty',
    breaks: ({ secret }) => secret.update({ ...id, client_secret: '' }),
  },
  {
    name: 'Secret half there (one file missing)',
    state: 'missing',
    breaks: ({ secret }) => secret.update(id),
  },
  {
    name: 'Secret unreadable (a link to itself: ELOOP)',
    state: 'unreadable',
    breaks: (world) => swapInUnreadable(world, 'client_secret'),
  },
  {
    name: 'Secret unreadable (a directory in its place)',
    state: 'unreadable',
    breaks: (world) => swapInUnreadable(world, '..set-aside'),
  },
];

const FAULT_MS = 600_000;

/** The Secret breaks for two lifetimes and comes back as it was: nobody notices, and the provider least of all. */
export async function runSecretFault({ name, state, breaks }: SecretFault, seed: number): Promise<void> {
  const world = await World.start({ seed });
  const { app, provider, secret, upstream } = world;
  await world.until(() => world.token.ready, 1000, 10);
  await breaks(world);
  await world.untilNoticed(() => world.token.credentials.state === state);
  await world.live(FAULT_MS);
  expect(app.answers.every(({ status, tookMs }) => status === 200 && tookMs === 0)).toBe(true);
  expect((await world.metrics()).sum('credentials_reload_total', { result: state })).toBeGreaterThanOrEqual(
    1,
  );

  const before = provider.requestsAtMs.length;
  await secret.update({ ...id, client_secret: provider.secret });
  const noticedMs = await world.untilNoticed(() => world.token.credentials.state === 'loaded');
  expect(await world.ask()).toBe(200);
  // The same content again is no rotation.
  expect(provider.requestsAtMs.length).toBe(before);

  const most = mostInAnyMinute(provider.requestsAtMs);
  expect(most).toBeLessThanOrEqual(MAX_GRANTS_PER_MINUTE.succeeding);
  expect(upstream.violations).toEqual([]);
  record({
    row: name,
    app: describeAnswers(app.answers),
    grants: `${before} in ${FAULT_MS / 1000} s, ≤ ${most}/min of ${MAX_GRANTS_PER_MINUTE.succeeding}`,
    metrics: `reload ${state}, ready 1`,
    recovery: `read again after ${seconds(noticedMs)}`,
  });
}

/** The app is told 503 until the Secret is there, and nothing is asked of the provider. */
export async function runSecretAbsentAtFirst(seed: number): Promise<void> {
  const world = await World.start({ seed, mountedSecret: null });
  const { app, provider, secret, upstream } = world;
  await world.live(120_000);
  expect(app.answers.every(({ error, tookMs }) => error === 'token_unavailable' && tookMs === 0)).toBe(true);
  expect(provider.requestsAtMs).toEqual([]);
  expect((await world.metrics()).sum('token_ready')).toBe(0);
  expect(upstream.served).toBe(0);

  await secret.update({ ...id, client_secret: provider.secret });
  const readyMs = await world.untilNoticed(() => world.token.ready);
  expect(await world.ask()).toBe(200);
  expect(upstream.violations).toEqual([]);
  record({
    row: 'Secret absent at the start, mounted later',
    app: describeAnswers(app.answers),
    grants: `0 before, ${provider.requestsAtMs.length} after`,
    metrics: 'ready 0 → 1',
    recovery: seconds(readyMs),
  });
}

/**
 * The provider has a new secret, the file holds half of it: rejected, the old token goes on; complete, the new secret
 * is used at once and not after the minutes that a rejection costs.
 */
export async function runSecretHalfWritten(seed: number): Promise<void> {
  const world = await World.start({ seed });
  const { app, provider, secret, upstream } = world;
  await world.until(() => world.token.ready, 1000, 10);
  provider.secret = 'right-2';
  await secret.update({ ...id, client_secret: 'rig' });
  await world.untilNoticed(() => world.token.consecutiveFailures === 1);
  await world.live(10_000);
  expect(app.answers.every(({ status, tookMs }) => status === 200 && tookMs === 0)).toBe(true);
  const broken = await world.metrics();
  expect(broken.sum('token_refresh_total', { result: 'rejected', reason: 'rotation' })).toBe(1);
  expect(broken.sum('token_ready')).toBe(1);

  await secret.update({ ...id, client_secret: 'right-2' });
  const recoveredMs = await world.untilNoticed(() => world.token.consecutiveFailures === 0);
  await world.live(600_000);
  expect(app.answers.every(({ status, tookMs }) => status === 200 && tookMs === 0)).toBe(true);
  expect(upstream.violations).toEqual([]);
  const most = mostInAnyMinute(provider.requestsAtMs);
  const designed = MAX_GRANTS_PER_MINUTE.succeeding + 2;
  expect(most).toBeLessThanOrEqual(designed);
  record({
    row: 'Secret half-written, then whole',
    app: describeAnswers(app.answers),
    grants: `${provider.requestsAtMs.length} in 610 s, ≤ ${most}/min of ${designed}`,
    metrics: 'rejected 1, ready 1',
    recovery: seconds(recoveredMs),
  });
}

/** A minute of it; the provider accepts only the newest. */
export async function runSecretFlapping(seed: number): Promise<void> {
  const world = await World.start({ seed });
  const { app, provider, secret, upstream } = world;
  await world.until(() => world.token.ready, 1000, 10);
  const changed = () => world.logLines.filter((line) => line.includes('credentials changed')).length;
  for (let change = 1; change <= 600; change++) {
    const beganAtMs = world.nowMs();
    if (change % 50 === 0) void app.send();
    provider.secret = `right-${change + 1}`;
    await secret.update({ ...id, client_secret: provider.secret });
    await world.untilNoticed(() => changed() === change);
    await world.advance(Math.max(0, 100 - (world.nowMs() - beganAtMs)));
  }
  const flappingMs = 60_000;
  const most = mostInAnyMinute(provider.requestsAtMs);
  expect(most).toBeLessThanOrEqual(MAX_GRANTS_PER_MINUTE.rotating);
  expect(most).toBeGreaterThan(5);
  const grants = provider.requestsAtMs.length;
  const recoveredMs = await world.until(() => provider.acceptedSecret === provider.secret, 5000);
  expect(world.token.consecutiveFailures).toBe(0);
  await world.live(600_000);
  expect(app.answers.every(({ status, tookMs }) => status === 200 && tookMs === 0)).toBe(true);
  expect(upstream.violations).toEqual([]);
  const metrics = await world.metrics();
  expect(metrics.sum('credentials_reload_total', { result: 'success' })).toBe(600);
  expect(metrics.sum('token_refresh_total')).toBe(provider.requestsAtMs.length);
  record({
    row: 'Secret replaced ten times a second',
    app: describeAnswers(app.answers),
    grants: `${grants} in ${flappingMs / 1000} s, ≤ ${most}/min of ${MAX_GRANTS_PER_MINUTE.rotating}`,
    metrics: 'reload success 600, ready 1',
    recovery: `newest in use after ${seconds(recoveredMs)}`,
  });
}

/** The kubelet is quicker than the provider: the token that is held would end in between. */
export async function runProviderBehind(seed: number): Promise<void> {
  const behindMs = 120_000;
  const world = await World.start({ seed });
  const { app, provider, secret, upstream } = world;
  await world.until(() => world.token.ready, 1000, 10);
  // The second grant is on schedule: what is left at its renewal is a quarter of the lifetime, 75 s or a little more.
  await world.until(() => provider.requestsAtMs.length === 2, 300_000);
  const { renewalAtMs = 0 } = world.token;
  await world.live(renewalAtMs - world.clock.now().wallMs - 5000);
  const before = provider.requestsAtMs.length;
  await secret.update({ ...id, client_secret: 'right-2' });
  await world.untilNoticed(() => world.token.lastFailure?.result === 'rejected');
  await world.live(behindMs);
  expect(world.token.credentials.previousInUse).toBe(true);
  provider.secret = 'right-2';
  const recoveredMs = await world.until(() => !world.token.credentials.previousInUse, 300_000);
  await world.live(60_000);
  expect(app.answers.every(({ status, tookMs }) => status === 200 && tookMs === 0)).toBe(true);
  expect(upstream.violations).toEqual([]);
  const metrics = await world.metrics();
  expect(metrics.sum('token_refresh_total', { result: 'success', reason: 'previous_credentials' })).toBe(1);
  const rejected = metrics.sum('token_refresh_total', { result: 'rejected' });
  expect(rejected).toBeGreaterThanOrEqual(3);
  const most = mostInAnyMinute(provider.requestsAtMs);
  const designed = MAX_GRANTS_PER_MINUTE.rejectedWithToken;
  expect(most).toBeLessThanOrEqual(designed);
  record({
    row: 'Secret replaced 120 s before the provider takes it',
    app: describeAnswers(app.answers),
    grants: `${provider.requestsAtMs.length - before} since, ≤ ${most}/min of ${designed}`,
    metrics: `rejected ${rejected}, previous_credentials 1, ready 1`,
    recovery: `newest in use after ${seconds(recoveredMs)}`,
  });
}

/** Some volumes are not swapped but made anew. */
export async function runSecretDirectoryMadeAnew(seed: number): Promise<void> {
  const world = await World.start({ seed });
  const { app, provider, secret, upstream } = world;
  const { directory } = secret;
  await world.until(() => world.token.ready, 1000, 10);
  await rm(directory, { recursive: true });
  await world.untilNoticed(() => world.token.credentials.state === 'missing');
  provider.secret = 'right-2';
  await layOutSecret(await makeDirectory(directory), { ...id, client_secret: 'right-2' });
  const noticedMs = await world.untilNoticed(() => provider.acceptedSecret === 'right-2');
  // The poll comes every 30 s; virtual time runs faster than the file system by a little.
  expect(noticedMs).toBeLessThan(10_000);
  await world.live(60_000);
  expect(app.answers.every(({ status, tookMs }) => status === 200 && tookMs === 0)).toBe(true);
  expect(upstream.violations).toEqual([]);
  expect(provider.requestsAtMs).toHaveLength(2);
  record({
    row: 'Secret directory removed and made again',
    app: describeAnswers(app.answers),
    grants: `${provider.requestsAtMs.length} in all`,
    metrics: 'reload missing, ready 1',
    recovery: `newest in use after ${seconds(noticedMs)}`,
  });
}

async function makeDirectory(path: string): Promise<string> {
  await mkdir(path);
  return path;
}
