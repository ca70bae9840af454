/** Who reports on profiles, and in which order, whatever becomes of single writes. */

import { expect, it, onTestFinished } from 'vitest';
import { judge } from '../../../src/injector/profile-rules.ts';
import { keptStatus, type ProfileStatus } from '../../../src/injector/profiles/profile.ts';
import { startProfileReports } from '../../../src/injector/profiles/profile-reports.ts';
import type { KeptProfile } from '../../../src/injector/profiles/profile-store.ts';
import { captureLog } from '../../support/log-capture.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { type Asked, scriptedKubernetes } from '../scripted-kubernetes.ts';
import { CREDENTIAL, ROUTE } from './pods-with-profiles.ts';

const SPEC = { credentials: [CREDENTIAL], routes: [ROUTE] };

/** @param answer of the API to a write; undefined where it takes it. */
function report(
  specs: Readonly<Record<string, object>>,
  answer: (asked: Asked) => unknown = () => undefined,
) {
  const clock = new ManualClock();
  const statuses = new Map<string, ProfileStatus>();
  const writes: string[] = [];
  const { api, streams } = scriptedKubernetes((asked) => {
    const { method, path, body } = asked;
    if (method === 'GET' && path.includes('/leases/')) return 404;
    if (method === 'GET') return { metadata: { resourceVersion: '1' }, items: [] };
    const name = /tokenprofiles\/([^/]+)\/status$/.exec(path)?.[1];
    if (name !== undefined) writes.push(name);
    const given = answer(asked);
    if (given !== undefined) return given;
    if (name !== undefined) statuses.set(name, body?.['status'] as unknown as ProfileStatus);
    return {};
  });
  const all = (): KeptProfile[] =>
    Object.entries(specs).map(([name, spec]) => {
      const identity = { kind: 'TokenProfile', name, namespace: 'team', generation: 1 } as const;
      const status = statuses.get(name);
      return {
        uid: `uid-${name}`,
        judged: judge(identity, spec),
        status: status === undefined ? undefined : keptStatus(status),
      };
    });
  const { log, lines } = captureLog();
  const reports = startProfileReports(api, {
    store: { all, settled: () => true },
    namespace: 'system',
    leaseName: 'profiles',
    identity: 'one',
    clock,
    random: () => 0.5,
    log,
  });
  onTestFinished(() => reports.close());
  return { clock, streams, statuses, lines, writes: () => writes.splice(0) };
}

it('the leader goes on after a renewal that outlasted its leadership', async () => {
  const renewed = Promise.withResolvers<object>();
  let hangs = false;
  const specs: Record<string, object> = { payments: SPEC };
  const { clock, writes } = report(specs, ({ path }) =>
    hangs && path.endsWith('/leases') ? renewed.promise : undefined,
  );
  await clock.advance(6000);
  expect(writes()).toEqual(['payments']);
  hangs = true;
  // Held for 45 s, renewed from the 15th second until after the look of the 50th.
  await clock.advance(40_000);
  specs['crm'] = SPEC;
  await clock.advance(5000);
  expect(writes()).toEqual([]);
  renewed.resolve({});
  await clock.advance(5000);
  expect(writes()).toEqual(['crm']);
});

it('a status that cannot be written is tried again after 30 s, then after a minute, and delays no other', async () => {
  const { clock, writes, lines } = report({ bad: SPEC, good: SPEC }, ({ path }) =>
    path.includes('/bad/') ? 500 : undefined,
  );
  await clock.advance(6000);
  expect(writes()).toEqual(['bad', 'good']);
  await clock.advance(24_000);
  expect(writes()).toEqual([]);
  await clock.advance(10_000);
  expect(writes()).toEqual(['bad']);
  await clock.advance(50_000);
  expect(writes()).toEqual([]);
  await clock.advance(15_000);
  expect(writes()).toEqual(['bad']);
  expect(lines.filter((line) => line.includes('not written'))[0]).toContain('"name":"bad"');
});

it('if the API server refuses all, five different ones are tried in five seconds', async () => {
  const names = Array.from({ length: 12 }, (_, at) => `p${at}`);
  const { clock, writes } = report(Object.fromEntries(names.map((name) => [name, SPEC])), ({ path }) =>
    path.endsWith('/status') ? 503 : undefined,
  );
  await clock.advance(6000);
  expect(writes()).toEqual(names.slice(0, 5));
  await clock.advance(5000);
  expect(writes()).toEqual(names.slice(5, 10));
});

it('fifty are written at a time, and the next ones after them', async () => {
  const names = Array.from({ length: 120 }, (_, at) => `p${at}`);
  // What was written is not seen yet, as where the watch is behind.
  const { clock, writes } = report(Object.fromEntries(names.map((name) => [name, SPEC])), () => ({}));
  await clock.advance(6000);
  expect(writes()).toEqual(names.slice(0, 50));
  await clock.advance(10_000);
  expect(writes()).toEqual([...names.slice(50), ...names.slice(0, 30)]);
});

it('what others have put on a status is replaced, and since when a profile has been valid stays', async () => {
  const { clock, statuses, writes } = report({ payments: SPEC });
  await clock.advance(6000);
  const first = statuses.get('payments');
  expect([first?.conditions?.length, writes()]).toEqual([1, ['payments']]);
  const [valid] = first?.conditions ?? [];
  if (valid === undefined) throw new Error('no condition');
  const more = [
    { ...valid, type: 'Other', message: 'x' },
    { ...valid, message: 'y' },
  ];
  statuses.set('payments', { ...first, conditions: more });
  await clock.advance(60_000);
  expect([statuses.get('payments'), writes()]).toEqual([first, ['payments']]);
});

it.each([{ status: 'Unknown' }, { lastTransitionTime: `2026-01-01T00:00:00.${'0'.repeat(1000)}Z` }])(
  'since when is told anew where the status holds none of ours: %j',
  async (other) => {
    const { clock, statuses } = report({ payments: SPEC });
    const valid = {
      type: 'Valid',
      status: 'True',
      reason: 'x',
      message: 'y',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    };
    statuses.set('payments', { conditions: [{ ...valid, ...other }] });
    await clock.advance(6000);
    expect(statuses.get('payments')?.conditions?.[0]?.lastTransitionTime).toMatch(/^2030-01-01T00:00:0\dZ$/);
  },
);

it.each(['', 'a', 'aa'])(
  'a message that is cut is text that the API server keeps as it is (%j)',
  async (shift) => {
    const credentials = Array.from({ length: 16 }, () => ({
      ...CREDENTIAL,
      issuerUrl: `ftp://${shift}${'😀/'.repeat(60)}`,
    }));
    const { clock, statuses } = report({ odd: { credentials, routes: [ROUTE] } });
    await clock.advance(6000);
    const message = statuses.get('odd')?.conditions?.[0]?.message ?? '';
    expect([message.length <= 4096, message.endsWith('…'), message.isWellFormed()]).toEqual([
      true,
      true,
      true,
    ]);
  },
);
