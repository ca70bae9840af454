import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  type Caller,
  type ClusterContact,
  createMutatingWebhook,
  createValidatingWebhook,
} from '../../src/injector/admission.ts';
import { createInjectorMetrics } from '../../src/injector/metrics.ts';
import { Registry } from '../../src/platform/prometheus.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { ASKING, DEFAULTS } from './defaults.ts';
import { reviewOf } from './review.ts';

const OWNER = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'shop-7', uid: 'u-1', controller: true };
const POD = {
  metadata: { generateName: 'shop-7-', annotations: ASKING, ownerReferences: [OWNER] },
  spec: { containers: [{ name: 'app' }] },
};

function start(contact: ClusterContact = {}, caller: Caller = 'api_server') {
  const registry = new Registry();
  const { log, lines } = captureLog();
  const options = {
    defaults: DEFAULTS,
    cluster: () => ({}),
    contact,
    metrics: createInjectorMetrics(registry),
    clock: new ManualClock(),
    log,
  };
  const mutate = createMutatingWebhook(options);
  const validate = createValidatingWebhook(options);
  const respond = async (webhook: typeof mutate, body: string) => {
    const answer = await webhook(Buffer.from(body), caller);
    expect(answer.status).toBe(200);
    return JSON.parse(answer.body).response;
  };
  return {
    mutate: (body: string) => respond(mutate, body),
    validate: (body: string) => respond(validate, body),
    raw: (body: string) => mutate(Buffer.from(body), caller),
    lines,
    counted: async () =>
      [
        ...(await registry.metrics()).matchAll(/admissions_total\{result="(\w+)",reason="(\w+)"\} [1-9]/g),
      ].map(([, result, reason]) => `${result} ${reason}`),
  };
}

describe('a mutating review', () => {
  it('is answered with its uid, a patch and what was done', async () => {
    const { mutate, counted } = start();
    const response = await mutate(reviewOf(POD, { uid: 'abc' }));

    expect(response).toMatchObject({
      uid: 'abc',
      allowed: true,
      patchType: 'JSONPatch',
      auditAnnotations: { result: 'injected', reason: 'native' },
    });
    expect(JSON.parse(Buffer.from(response.patch, 'base64').toString())[0].op).toBe('add');
    expect(response).not.toHaveProperty('warnings');
    expect(await counted()).toEqual(['injected native']);
  });

  it('of a pod that does not ask is allowed without a patch', async () => {
    const { mutate, counted } = start();
    expect(await mutate(reviewOf({ metadata: {}, spec: { containers: [] } }))).not.toHaveProperty('patch');
    expect(await counted()).toEqual(['skipped not_requested']);
  });

  it('of a pod that cannot have the sidecar is denied with the reason', async () => {
    const { mutate, counted } = start();
    const pod = { ...POD, spec: { ...POD.spec, hostNetwork: true } };
    expect(await mutate(reviewOf(pod))).toMatchObject({
      allowed: false,
      status: { code: 403, message: expect.stringContaining('spec.hostNetwork') },
    });
    expect(await counted()).toEqual(['rejected unsuitable_pod']);
  });

  it.each([
    ['an update', { operation: 'UPDATE' }],
    ['a subresource', { subResource: 'ephemeralcontainers' }],
    ['another kind', { kind: { group: 'apps', version: 'v1', kind: 'Deployment' } }],
  ])('of %s is allowed untouched', async (_, request) => {
    const { mutate, counted } = start();
    expect(await mutate(reviewOf(POD, request))).toEqual({ uid: 'uid', allowed: true });
    expect(await counted()).toEqual(['skipped not_a_new_pod']);
  });

  it.each([
    'not JSON',
    '{}',
    '{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"x"}}',
    '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}',
    reviewOf({ metadata: { annotations: { a: 1 } }, spec: {} }),
    reviewOf({ metadata: {}, spec: { containers: 'many' } }),
    reviewOf(null),
  ])('that is malformed is no answer but an error: %s', async (body) => {
    const { raw, counted } = start();
    expect(await raw(body)).toMatchObject({ status: 400 });
    expect(await counted()).toEqual(['error malformed']);
  });

  it('on which the injector fails leaves the decision to the failurePolicy', async () => {
    const { raw, counted, lines } = start({ secretExists: () => Promise.reject(new Error('a bug')) });
    expect(await raw(reviewOf(POD))).toEqual({ status: 500, body: 'internal error' });
    expect(await counted()).toEqual(['error internal']);
    expect(lines.join()).toContain('a bug');
  });
});

describe('a missing Secret', () => {
  it('is a warning, and its owner is looked at; the pod is injected', async () => {
    const lookAtOwner = vi.fn();
    const { mutate } = start({ secretExists: async () => false, lookAtOwner });
    expect(await mutate(reviewOf(POD, { namespace: 'team' }))).toMatchObject({
      allowed: true,
      patchType: 'JSONPatch',
      warnings: ['the Secret shop-oauth does not exist in team: the pod will wait for it'],
    });
    expect(lookAtOwner).toHaveBeenCalledExactlyOnceWith(OWNER, 'team');
  });

  it.each([true, undefined])(
    'is no warning if the Secret exists, or if that is unknown (%s)',
    async (exists) => {
      const { mutate } = start({ secretExists: async () => exists });
      expect(await mutate(reviewOf(POD))).not.toHaveProperty('warnings');
    },
  );

  it('is only a warning in a dry run, without an Event', async () => {
    const lookAtOwner = vi.fn();
    const { mutate } = start({ secretExists: async () => false, lookAtOwner });
    expect(await mutate(reviewOf(POD, { dryRun: true }))).toMatchObject({ warnings: [expect.anything()] });
    expect(lookAtOwner).not.toHaveBeenCalled();
  });

  it('is not told to a review that did not come from the API server', async () => {
    const secretExists = vi.fn(async () => false);
    const { mutate } = start({ secretExists }, 'unverified');
    expect(await mutate(reviewOf(POD))).not.toHaveProperty('warnings');
    expect(secretExists).not.toHaveBeenCalled();
  });
});

describe('the owner of a pod', () => {
  it('is looked at when the pod is skipped although it asks', async () => {
    const lookAtOwner = vi.fn();
    const { mutate } = start({ lookAtOwner }, 'unverified');
    await mutate(reviewOf(POD, { namespace: 'kube-system' }));
    expect(lookAtOwner).toHaveBeenCalledExactlyOnceWith(OWNER, 'kube-system');
  });

  it('is not looked at if there can be nothing to report', async () => {
    const lookAtOwner = vi.fn();
    const { mutate } = start({ lookAtOwner });
    await mutate(reviewOf(POD));
    await mutate(reviewOf({ ...POD, metadata: { ...POD.metadata, annotations: {} } }));
    expect(lookAtOwner).not.toHaveBeenCalled();
  });
});

describe('what a review may cost', () => {
  const inside = (count: number, spec: object): string =>
    reviewOf({ metadata: { annotations: ASKING }, spec: { ...spec, containers: [{ name: 'app' }], count } });

  it.each([
    ['a deep one', reviewOf(JSON.parse(`${'['.repeat(70)}${']'.repeat(70)}`)), 'levels deep'],
    ['one of very many values', inside(1, { x: Array.from({ length: 200_000 }, () => []) }), 'values'],
    ['a namespace that is no name', reviewOf(POD, { namespace: 'n'.repeat(254) }), 'no name'],
    [
      'an owner that is none',
      reviewOf({ ...POD, metadata: { ownerReferences: [{ kind: {} }] } }),
      'shape of a Pod',
    ],
  ])('%s is refused', async (_, body, reason) => {
    const { raw } = start();
    const parse = vi.spyOn(JSON, 'parse');
    onTestFinished(() => parse.mockRestore());
    expect(await raw(body)).toEqual({ status: 400, body: expect.stringContaining(reason) });
    if (/levels|values/.test(reason)) expect(parse).not.toHaveBeenCalled();
  });

  it('brackets within strings are not counted', async () => {
    const { mutate } = start();
    const annotations = { ...ASKING, note: `${'["\\'.repeat(100_000)}` };
    expect(await mutate(reviewOf({ ...POD, metadata: { annotations } }))).toMatchObject({ allowed: true });
  });

  it('the answer to a small review is small, whatever the review says', async () => {
    const { mutate } = start();
    const forward = { 'token-sidecar.dev/mode': 'forward', 'token-sidecar.dev/config-map': 'routes' };
    const many = Object.fromEntries(
      Array.from({ length: 5000 }, (_, index) => [`token-sidecar.dev/upstrea${index}`, 'x'.repeat(500)]),
    );
    const pods = [
      { metadata: { annotations: { ...ASKING, ...forward } }, spec: { containers: Array(60_000).fill({}) } },
      { metadata: { annotations: { ...ASKING, ...many } }, spec: { containers: [{}] } },
      { metadata: { annotations: { ...ASKING, 'token-sidecar.dev/image': '"'.repeat(1e6) } }, spec: {} },
    ];
    for (const pod of pods) {
      expect(JSON.stringify(await mutate(reviewOf(pod))).length).toBeLessThan(64 * 1024);
    }
  });

  it('is logged as not understood once, and then counted', async () => {
    const { raw, lines } = start();
    for (let sent = 0; sent < 100; sent++) await raw('{}');
    expect(lines.filter((line) => line.includes('not understood'))).toHaveLength(1);
  });
});

describe('a validating review', () => {
  const sidecar = { name: 'token-sidecar' };
  it.each([
    ['has not the sidecar it asks for', POD.spec, ASKING, false],
    ['has it as a native sidecar', { ...POD.spec, initContainers: [sidecar] }, ASKING, true],
    ['has it as a container', { containers: [sidecar] }, ASKING, true],
    ['does not ask', POD.spec, {}, true],
    ['asks not to', POD.spec, { 'token-sidecar.dev/inject': 'false' }, true],
  ])('of a pod that %s', async (_, spec, annotations, allowed) => {
    const { validate, counted } = start();
    expect(await validate(reviewOf({ metadata: { annotations }, spec }))).toMatchObject({ allowed });
    expect(await counted()).toEqual(allowed ? [] : ['rejected not_injected']);
  });
});
