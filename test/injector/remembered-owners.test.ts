/** Which owners are looked at and told, and for how long that is remembered. */

import { expect, it } from 'vitest';
import { createEventRecorder, createOwnerEvents } from '../../src/injector/cluster/owner-events.ts';
import { inject } from '../../src/injector/pod/inject.ts';
import type { Pod } from '../../src/injector/pod/pod.ts';
import type { OwnerReference } from '../../src/platform/kubernetes/api.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { ASKING, DEFAULTS } from './defaults.ts';
import { type Asked, scriptedKubernetes } from './scripted-kubernetes.ts';

const TEMPLATE: Pod = { metadata: { annotations: ASKING }, spec: { containers: [{ name: 'app' }] } };
const owner = (name: string, more: Partial<OwnerReference> = {}): OwnerReference => ({
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  name,
  uid: `u-${name}`,
  ...more,
});

function start(answer: (asked: Asked) => unknown = () => undefined) {
  const clock = new ManualClock();
  const { log, lines } = captureLog();
  const { api, asked } = scriptedKubernetes((request) => {
    const name = request.path.split('/').at(-1);
    return answer(request) ?? { metadata: { name, uid: `u-${name}` }, spec: { template: TEMPLATE } };
  });
  const verdictOf = (pod: Pod, name: string) => inject(pod, { name }, DEFAULTS, {});
  const tell = createOwnerEvents(api, {
    clock,
    log,
    tell: createEventRecorder(api, clock),
    verdictOf,
    secretExists: async () => false,
  });
  return {
    clock,
    lines,
    asked,
    looks: () => asked.filter(({ method }) => method === 'GET').map(({ path }) => path),
    events: () => asked.filter(({ method }) => method === 'POST'),
    async tell(of: OwnerReference, namespace = 'team'): Promise<void> {
      tell(of, namespace);
      await clock.advance(0);
    },
    tellAtOnce: tell,
  };
}

it.each([
  ['v1', 'ReplicationController', '/api/v1/namespaces/team/replicationcontrollers/o'],
  ['apps/v1', 'ReplicaSet', '/apis/apps/v1/namespaces/team/replicasets/o'],
  ['apps/v1', 'StatefulSet', '/apis/apps/v1/namespaces/team/statefulsets/o'],
  ['apps/v1', 'DaemonSet', '/apis/apps/v1/namespaces/team/daemonsets/o'],
  ['batch/v1', 'Job', '/apis/batch/v1/namespaces/team/jobs/o'],
])('an owner of %s %s is looked at where it is', async (apiVersion, kind, path) => {
  const { tell, looks } = start();
  await tell(owner('o', { apiVersion, kind }));
  expect(looks()).toEqual([path]);
});

it.each([
  ['', 'team'],
  ['A', 'team'],
  ['-a', 'team'],
  ['a-', 'team'],
  ['a..b', 'team'],
  ['a\n', 'team'],
  ['a', ''],
  ['a', '../x'],
])('a name that leads elsewhere is not looked at: %j in %j', async (name, namespace) => {
  const { tell, looks } = start();
  await tell(owner(name), namespace);
  expect(looks()).toEqual([]);
});

it('an Event has all that kubectl shows, on the owner and in its namespace', async () => {
  const { tell, events } = start();
  await tell(owner('a-1.b'));
  expect(events()).toEqual([
    {
      method: 'POST',
      path: '/api/v1/namespaces/team/events',
      query: undefined,
      body: {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name: expect.stringMatching(/^a-1\.b\.[0-9a-f]{16}$/), namespace: 'team' },
        involvedObject: {
          apiVersion: 'apps/v1',
          kind: 'ReplicaSet',
          name: 'a-1.b',
          namespace: 'team',
          uid: 'u-a-1.b',
        },
        type: 'Warning',
        reason: 'TokenSidecarSecretMissing',
        message: expect.stringContaining('shop-oauth'),
        source: { component: 'token-sidecar-injector' },
        reportingComponent: 'token-sidecar-injector',
        reportingInstance: '',
        firstTimestamp: '2030-01-01T00:00:00.000Z',
        lastTimestamp: '2030-01-01T00:00:00.000Z',
        count: 1,
      },
    },
  ]);
});

it('the name and the message of an Event are cut to what the API server takes', async () => {
  const template = {
    metadata: { annotations: { ...ASKING, 'token-sidecar.dev/status': 'injected' } },
    spec: { containers: [{ name: 'app' }] },
  };
  const name = 'n'.repeat(250);
  const long = `${'s'.repeat(2000)}`;
  const { tell, events } = start(({ method }) =>
    method === 'GET' ? { metadata: { uid: `u-${name}` }, spec: { template } } : undefined,
  );
  await tell(owner(name), 'team');
  expect(events()[0]?.body).toMatchObject({
    metadata: { name: expect.stringMatching(/^n{200}\.[0-9a-f]{16}$/) },
  });
  const wordy = start();
  const verdictOf = () => ({ result: 'skipped', reason: 'mirror_pod', warnings: [long] }) as const;
  const { api, asked } = scriptedKubernetes(() => ({ metadata: { uid: 'u-a' } }));
  createOwnerEvents(api, {
    clock: wordy.clock,
    log: captureLog().log,
    tell: createEventRecorder(api, wordy.clock),
    verdictOf,
  })(owner('a'), 'team');
  await wordy.clock.advance(0);
  expect(asked[1]?.body).toMatchObject({ message: 's'.repeat(1024), reason: 'TokenSidecarNotInjected' });
});

it('each owner gets one Event for each finding', async () => {
  const { tell, events, clock } = start();
  await tell(owner('a'));
  await tell(owner('b'));
  expect(events()).toHaveLength(2);
  await clock.advance(10_000);
  await tell(owner('a'));
  expect(events()).toHaveLength(2);
  await tell(owner('a', { uid: 'another' }));
  expect(events()).toHaveLength(2);
});

it('an Event that was refused is made at the next look', async () => {
  let refuses = true;
  const { tell, events, clock, lines } = start(({ method }) =>
    method === 'POST' && refuses ? 403 : undefined,
  );
  await tell(owner('a'));
  expect(lines.join()).toContain('Event not made');
  refuses = false;
  await clock.advance(10_000);
  await tell(owner('a'));
  expect(events()).toHaveLength(2);
});

it.each([
  [404, false],
  [500, true],
])('an owner that cannot be read (%i) is told nothing', async (status, isTrouble) => {
  const { tell, events, lines } = start(() => status);
  await tell(owner('a'));
  expect(events()).toEqual([]);
  expect(lines.join().includes('Event not made')).toBe(isTrouble);
  expect(lines.join().includes('names an owner that is not there')).toBe(!isTrouble);
});

it('eight looks are under way at a time, and there are more when those have ended', async () => {
  const { tellAtOnce, looks, clock } = start();
  for (let count = 0; count < 20; count++) tellAtOnce(owner(`a-${count}`), 'team');
  expect(looks()).toHaveLength(8);
  await clock.advance(0);
  for (let count = 20; count < 40; count++) tellAtOnce(owner(`a-${count}`), 'team');
  expect(looks()).toHaveLength(16);
});

it('a thousand owners are remembered, and the one told of longest ago is forgotten for one more', async () => {
  const { tell, events, clock } = start();
  for (let count = 0; count < 1000; count++) {
    await tell(owner(`a-${count}`));
    await clock.advance(200);
  }
  await tell(owner('a-0'));
  expect(events()).toHaveLength(1000);
  await clock.advance(200);
  await tell(owner('one-more'));
  await clock.advance(10_000);
  await tell(owner('a-0'));
  expect(events()).toHaveLength(1001);
  await tell(owner('a-1'));
  expect(events()).toHaveLength(1002);
});

it.each<[string, Pod]>([
  ['do not ask', { metadata: {}, spec: { containers: [{ name: 'app' }] } }],
  ['are not there', {}],
])('an owner whose pods %s is told nothing, and no word is said of it', async (_, template) => {
  const { tell, events, lines } = start(({ method }) =>
    method === 'GET' ? { metadata: { uid: 'u-a' }, spec: { template } } : undefined,
  );
  await tell(owner('a'));
  expect([events(), lines]).toEqual([[], []]);
});
