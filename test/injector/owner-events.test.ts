import { describe, expect, it } from 'vitest';
import { createEventRecorder, createOwnerEvents } from '../../src/injector/cluster/owner-events.ts';
import { inject } from '../../src/injector/pod/inject.ts';
import type { Pod } from '../../src/injector/pod/pod.ts';
import {
  type KubernetesApi,
  KubernetesApiError,
  type OwnerReference,
} from '../../src/platform/kubernetes/api.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { ASKING, DEFAULTS } from './defaults.ts';

const OWNER: OwnerReference = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'shop-7', uid: 'u-1' };
const TEMPLATE: Pod = { metadata: { annotations: ASKING }, spec: { containers: [{ name: 'app' }] } };
const TEN_MINUTES_MS = 600_000;

function start({ uid = 'u-1', template = TEMPLATE, exists = false } = {}) {
  const clock = new ManualClock();
  const { log, lines } = captureLog();
  const looks: string[] = [];
  const events: { readonly reason: string; readonly message: string; readonly involvedObject: object }[] = [];
  let broken = false;
  const api: KubernetesApi = {
    async request<T>(method: string, path: string, options?: { body?: object }): Promise<T> {
      if (broken) throw new KubernetesApiError('no', 500);
      if (method === 'GET') looks.push(path);
      else events.push(options?.body as (typeof events)[number]);
      return { metadata: { name: 'shop-7', uid }, spec: { template } } as T;
    },
    watch: async () => undefined,
  };
  const verdictOf = (pod: Pod, name: string) => inject(pod, { name }, DEFAULTS, {});
  const tell = createOwnerEvents(api, {
    clock,
    log,
    tell: createEventRecorder(api, clock),
    verdictOf,
    secretExists: async () => exists,
  });
  return {
    looks,
    events,
    lines,
    advance: (ms: number) => clock.advance(ms),
    breakApi: (now: boolean) => {
      broken = now;
    },
    async tell(owner: Partial<OwnerReference> = {}, namespace = 'team'): Promise<void> {
      tell({ ...OWNER, ...owner }, namespace);
      await clock.advance(0);
    },
  };
}

describe('an Event', () => {
  it('is made once for all pods of a rollout, and again after ten minutes', async () => {
    const { tell, advance, events, looks } = start();
    for (let pod = 0; pod < 30; pod++) {
      await tell();
      await advance(11_000);
    }
    expect(looks).toHaveLength(30);
    expect(events).toHaveLength(1);
    await advance(TEN_MINUTES_MS);
    await tell();
    expect(events).toHaveLength(2);
  });

  it('is made on the owner, with what its own template lacks', async () => {
    const { tell, events } = start();
    await tell();
    expect(events).toEqual([
      expect.objectContaining({
        reason: 'TokenSidecarSecretMissing',
        message: 'the Secret shop-oauth does not exist in team: the pod will wait for it',
        involvedObject: { ...OWNER, namespace: 'team' },
      }),
    ]);
  });

  it('says why pods are skipped', async () => {
    const { tell, events } = start();
    await tell({}, 'kube-system');
    expect(events).toEqual([expect.objectContaining({ reason: 'TokenSidecarNotInjected' })]);
  });

  it('that could not be made is tried again with a later pod', async () => {
    const { tell, advance, events, breakApi, lines } = start();
    breakApi(true);
    await tell();
    expect(lines.join()).toContain('Event not made');
    breakApi(false);
    await advance(11_000);
    await tell();
    expect(events).toHaveLength(1);
  });

  it.each([
    ['the Secret is there', { exists: true }],
    ['the owner is another', { uid: 'u-2' }],
    ['its pods do not ask', { template: { metadata: {}, spec: { containers: [{ name: 'app' }] } } }],
    [
      'its pods are refused, which their owner says itself',
      { template: { metadata: TEMPLATE.metadata ?? {} } },
    ],
  ])('is not made when %s', async (_, world) => {
    const { tell, events, looks } = start(world);
    await tell();
    expect(looks).toHaveLength(1);
    expect(events).toEqual([]);
  });
});

describe('a look at an owner', () => {
  it('happens once in ten seconds, however many pods it makes', async () => {
    const { tell, advance, looks } = start();
    for (let pod = 0; pod < 100; pod++) await tell();
    expect(looks).toEqual(['/apis/apps/v1/namespaces/team/replicasets/shop-7']);
    await advance(10_000);
    await tell();
    expect(looks).toHaveLength(2);
  });

  it('happens fifty times at once and then five times a second, whatever reviews name', async () => {
    const { tell, advance, looks } = start({ uid: 'none' });
    const flood = async (round: number): Promise<void> => {
      for (let pod = 0; pod < 200; pod++) await tell({ name: `flood-${round}-${pod}` });
    };
    await flood(1);
    expect(looks).toHaveLength(50);
    await advance(2000);
    await flood(2);
    expect(looks).toHaveLength(60);
  });

  it.each([
    { kind: 'Secret', apiVersion: 'v1' },
    { kind: 'toString', apiVersion: 'apps/v1' },
    { name: '..' },
    { name: 'a/b' },
    { name: 'a?b' },
  ])('is not had at %j', async (owner) => {
    const { tell, looks } = start();
    await tell(owner);
    expect(looks).toEqual([]);
  });
});
