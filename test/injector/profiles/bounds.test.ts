/** However many profiles and pods a cluster has, the injector keeps no more of them than it says. */

import { expect, it, onTestFinished } from 'vitest';
import { judge } from '../../../src/injector/profile-rules.ts';
import { keptStatus } from '../../../src/injector/profiles/profile.ts';
import { createProfileUsage } from '../../../src/injector/profiles/profile-reports.ts';
import { watchProfiles } from '../../../src/injector/profiles/profile-store.ts';
import { captureLog } from '../../support/log-capture.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { scriptedKubernetes } from '../scripted-kubernetes.ts';
import { CREDENTIAL, ROUTE } from './pods-with-profiles.ts';

const LISTED_ANEW_AFTER_MS = 300_000;

const object = (name: string, spec: object, namespace = 'team') => ({
  metadata: { name, namespace, uid: `uid-${name}`, generation: 1, resourceVersion: '2' },
  spec,
});

async function stored(items: readonly object[], namespaces: readonly object[] = []) {
  const clock = new ManualClock();
  const { api, streams } = scriptedKubernetes(({ path }) => ({
    metadata: { resourceVersion: '1' },
    items: path.endsWith('/tokenprofiles') ? items : path.endsWith('/namespaces') ? namespaces : [],
  }));
  const { log, lines } = captureLog();
  let judgements = 0;
  const store = watchProfiles(api, {
    clock,
    random: () => 0.5,
    log,
    judge: (identity, spec) => {
      judgements++;
      return judge(identity, spec);
    },
  });
  onTestFinished(() => store.close());
  await clock.advance(0);
  return { store, streams, clock, lines, judgements: () => judgements };
}

const LARGE = { credentials: [{ ...CREDENTIAL, audience: 'a'.repeat(4000) }], routes: [ROUTE] };
const LARGE_SIZE = JSON.stringify(LARGE).length;
const MIB = 1024 * 1024;

it('profiles of one kind are kept up to 8 MiB; more are refused with that reason, until there is room', async () => {
  const most = Math.floor((8 * MIB) / LARGE_SIZE);
  const items = Array.from({ length: most + 1 }, (_, at) => object(`p${at}`, LARGE, `team${at % 10}`));
  const { store, streams, lines } = await stored(items);
  const stateOf = (at: number) => store.namespaced(`team${at % 10}`, `p${at}`);
  expect(stateOf(most - 1)?.state).toBe('valid');
  expect(stateOf(most)).toMatchObject({
    state: 'invalid',
    problems: [{ key: 'metadata.name', expected: expect.stringContaining('8388608 characters are kept') }],
  });
  expect(lines.filter((line) => line.includes('profile not kept'))).toHaveLength(1);
  for (const { send } of streams) send({ type: 'DELETED', object: items[0] });
  for (const { send } of streams) send({ type: 'MODIFIED', object: items[most] });
  expect(stateOf(most)?.state).toBe('valid');
});

it('a namespace has up to 1 MiB and 1250 profiles, and others keep their room', async () => {
  const most = Math.floor(MIB / LARGE_SIZE);
  const large = Array.from({ length: most + 1 }, (_, at) => object(`p${at}`, LARGE));
  const small = { credentials: [CREDENTIAL], routes: [ROUTE] };
  const many = Array.from({ length: 1251 }, (_, at) => object(`p${at}`, small, 'many'));
  const { store, streams, lines } = await stored([...large, ...many, object('one', small, 'other')]);
  expect(store.namespaced('team', `p${most - 1}`)?.state).toBe('valid');
  expect(store.namespaced('team', `p${most}`)).toMatchObject({
    problems: [{ expected: expect.stringContaining('of one namespace 1048576 characters are kept') }],
  });
  expect(store.namespaced('many', 'p1249')?.state).toBe('valid');
  expect(store.namespaced('many', 'p1250')).toBeUndefined();
  expect(lines.join()).toContain('its namespace has too many');
  expect(store.namespaced('other', 'one')?.state).toBe('valid');
  for (const { send } of streams) send({ type: 'DELETED', object: many[0] });
  for (const { send } of streams) send({ type: 'MODIFIED', object: many[1250] });
  expect(store.namespaced('many', 'p1250')?.state).toBe('valid');
});

it('a profile that was left out is validated five minutes after there is room again, without a change', async () => {
  const small = { credentials: [CREDENTIAL], routes: [ROUTE] };
  const items = Array.from({ length: 1252 }, (_, at) => object(`p${at}`, small, 'many'));
  const { store, streams, clock } = await stored(items);
  await clock.advance(2 * LISTED_ANEW_AFTER_MS);
  expect(streams).toHaveLength(3);
  const [gone] = items.splice(0, 1);
  streams[0]?.send({ type: 'DELETED', object: gone });
  await clock.advance(LISTED_ANEW_AFTER_MS - 1);
  expect(store.namespaced('many', 'p1250')).toBeUndefined();
  await clock.advance(1);
  expect([store.unread(), store.namespaced('many', 'p1250')?.state]).toEqual([undefined, 'valid']);
  expect(store.namespaced('many', 'p1251')).toBeUndefined();
  // No room was given back since: nothing is asked for.
  await clock.advance(2 * LISTED_ANEW_AFTER_MS);
  expect(streams).toHaveLength(4);
  store.close();
  expect(clock.pendingTimers).toBe(0);
});

it('a profile that is too large takes the room of its one problem, and an invalid one of twenty problems', async () => {
  const huge = { ...LARGE, credentials: [{ ...CREDENTIAL, scope: 'a'.repeat(600_000) }] };
  const routes = Array.from({ length: 64 }, (_, at) => ({ ...ROUTE, name: `r${at}`, credential: 'nobody' }));
  const { store } = await stored([
    ...['a', 'b', 'c'].map((name) => object(name, huge)),
    object('wrong', { credentials: [CREDENTIAL], routes }),
    object('right', LARGE),
  ]);
  expect(store.namespaced('team', 'c')).toMatchObject({
    problems: [{ key: 'spec', expected: 'at most 65536 characters' }],
  });
  const wrong = store.namespaced('team', 'wrong');
  expect(wrong?.state === 'invalid' && wrong.problems.length).toBe(20);
  expect(store.namespaced('team', 'right')?.state).toBe('valid');
});

it('only a bounded part of a status is kept, whatever it holds', async () => {
  const condition = {
    type: 'Valid',
    status: 'True',
    reason: 'x',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  };
  const others = Array.from({ length: 100 }, (_, at) => ({ ...condition, type: `t${at}`, message: '' }));
  const { store } = await stored(
    Array.from({ length: 20 }, (_, at) => ({
      ...object(`p${at}`, {}),
      status: {
        conditions: [{ ...condition, message: 'm'.repeat(200_000) + at }, ...others],
        more: 'm'.repeat(1000),
      },
    })),
  );
  const statuses = [...store.all()].map(({ status }) => status);
  for (const status of statuses) expect(JSON.stringify(status).length).toBeLessThan(200);
  expect(new Set(statuses.map((status) => status?.says)).size).toBe(20);
  expect(statuses[0]?.valid).toEqual({ status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' });
});

it('profiles beyond 10 000 are reported', async () => {
  const named = (at: number) => ({ metadata: { name: `n${at}`, resourceVersion: '2', labels: { a: 'b' } } });
  const { store, lines } = await stored(
    [],
    Array.from({ length: 10_001 }, (_, at) => named(at)),
  );
  expect([store.labels('n9999'), store.labels('n10000')]).toEqual([{ a: 'b' }, undefined]);
  expect(lines.join()).toContain('not kept: there are more than 10000');
});

it('a profile is validated once for each change of its spec, and not when its status changes', async () => {
  const one = object('payments', { credentials: [CREDENTIAL], routes: [ROUTE] });
  const { store, streams, judgements } = await stored([one]);
  const send = (object: object) => streams[0]?.send({ type: 'MODIFIED', object });
  send({ ...one, status: { pods: 1 } });
  expect(judgements()).toBe(1);
  expect([...store.all()].map(({ status }) => status)).toEqual([keptStatus({ pods: 1 })]);
  send({ ...one, metadata: { ...one.metadata, generation: 2 }, spec: {} });
  expect(judgements()).toBe(2);
  expect(store.namespaced('team', 'payments')?.state).toBe('invalid');
});

it('a profile without room is not validated again while there is none, however often it is listed', async () => {
  const most = Math.floor(MIB / LARGE_SIZE);
  const items = Array.from({ length: most + 1 }, (_, at) => object(`p${at}`, LARGE));
  const { store, streams, judgements } = await stored(items);
  expect(judgements()).toBe(most + 1);
  const left = { ...object(`p${most}`, LARGE), status: { pods: 1 } };
  for (let times = 0; times < 3; times++) streams[0]?.send({ type: 'MODIFIED', object: left });
  expect(judgements()).toBe(most + 1);
  expect([...store.all()].filter(({ status }) => status?.says === keptStatus({ pods: 1 }).says)).toHaveLength(
    1,
  );
  // One of the same name that says something else, and one that was made anew, are others.
  const small = { credentials: [CREDENTIAL], routes: [ROUTE] };
  const changed = { metadata: { ...left.metadata, generation: 2 }, spec: LARGE };
  streams[0]?.send({ type: 'MODIFIED', object: changed });
  streams[0]?.send({
    type: 'MODIFIED',
    object: { metadata: { ...changed.metadata, uid: 'new' }, spec: small },
  });
  expect(judgements()).toBe(most + 3);
  expect(store.namespaced('team', `p${most}`)?.state).toBe('valid');
});

it('a profile without room is validated and kept once there is room', async () => {
  const most = Math.floor(MIB / LARGE_SIZE);
  const items = Array.from({ length: most + 2 }, (_, at) => object(`p${at}`, LARGE));
  const { store, streams } = await stored(items);
  streams[0]?.send({ type: 'DELETED', object: items[0] });
  for (const at of [most, most + 1]) streams[0]?.send({ type: 'MODIFIED', object: items[at] });
  const states = [most, most + 1].map((at) => store.namespaced('team', `p${at}`)?.state);
  expect(states).toEqual(['valid', 'invalid']);
});

it('profiles that were unknown for a moment are read again, without a change of any of them', async () => {
  const { store, streams, clock } = await stored([
    object('payments', { credentials: [CREDENTIAL], routes: [ROUTE] }),
  ]);
  streams[0]?.send({ type: 'ERROR', object: { code: 404, message: 'the server could not find it' } });
  streams[0]?.end();
  await clock.advance(0);
  expect([store.unread(), store.namespaced('team', 'payments')]).toEqual([
    expect.stringContaining('their definition is not installed'),
    undefined,
  ]);
  await clock.advance(1000);
  expect([store.unread(), store.namespaced('team', 'payments')?.state]).toEqual([undefined, 'valid']);
});

it('a namespace with more labels than 2 KiB has none', async () => {
  const named = (name: string, value: string) => ({
    metadata: { name, resourceVersion: '2', labels: { tier: value } },
  });
  const { store } = await stored([], [named('few', 'web'), named('many', 'x'.repeat(2048))]);
  expect(store.labels('few')).toEqual({ tier: 'web' });
  expect(store.labels('many')).toBeUndefined();
});

it('up to 50 000 pods are counted', () => {
  const usage = createProfileUsage();
  const pod = (uid: string) => ({
    metadata: {
      uid,
      namespace: 'team',
      annotations: { 'token-sidecar.dev/profiles-in-use': 'TokenProfile/payments@1' },
    },
  });
  for (let at = 0; at <= 50_000; at++) usage.seen(pod(`u${at}`));
  const identity = { kind: 'TokenProfile', name: 'payments', namespace: 'team', generation: 2 } as const;
  expect(usage.of([identity]).get(identity)).toEqual({ pods: 50_000, outdatedPods: 50_000 });
  usage.gone(pod('u0'));
  usage.seen(pod('late'));
  expect(usage.of([identity]).get(identity)).toMatchObject({ pods: 50_000 });
});

it('items up to the bound are kept, and a kept one may change', async () => {
  const named = (at: number, a = 'b') => ({
    metadata: { name: `n${at}`, resourceVersion: '2', labels: { a } },
  });
  const { store, lines } = await stored(
    [],
    [...Array.from({ length: 10_000 }, (_, at) => named(at)), named(9_999, 'changed')],
  );
  expect([store.labels('n0'), store.labels('n9999')]).toEqual([{ a: 'b' }, { a: 'changed' }]);
  expect(lines.join()).not.toContain('not kept');
});
