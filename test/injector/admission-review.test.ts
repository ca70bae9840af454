import { describe, expect, it } from 'vitest';
import { admissionResponse, parseAdmissionReview } from '../../src/injector/admission.ts';
import { reviewOf } from './review.ts';

const POD = { metadata: { name: 'shop' }, spec: { containers: [{ name: 'app' }] } };
const LONGEST = 'n'.repeat(253);
const OWNER = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'shop-7', uid: 'u-1' };

const parse = (pod: unknown, request: Readonly<Record<string, unknown>> = {}) =>
  parseAdmissionReview(Buffer.from(reviewOf(pod, request)));

describe('a review', () => {
  it('of a pod being made brings the pod', () => {
    expect(parse(POD, { uid: 'abc', namespace: 'team' })).toEqual({
      uid: 'abc',
      namespace: 'team',
      dryRun: false,
      pod: POD,
    });
  });

  it.each([
    ['an update', { operation: 'UPDATE' }],
    ['a subresource', { subResource: 'ephemeralcontainers' }],
    ['a kind of apps', { kind: { group: 'apps', version: 'v1', kind: 'Deployment' } }],
    ['a Pod of another group', { kind: { group: 'metrics.k8s.io', version: 'v1', kind: 'Pod' } }],
    ['another kind of the core group', { kind: { group: '', version: 'v1', kind: 'ConfigMap' } }],
    ['something without a kind', { kind: null }],
  ])('of %s brings none, whatever shape its object has', (_, request) => {
    for (const object of [POD, { data: {} }, null]) {
      expect(parse(object, request)).toMatchObject({ uid: 'uid', pod: undefined });
    }
  });

  it('is a dry run only if it says so', () => {
    expect(parse(POD, { dryRun: true })).toMatchObject({ dryRun: true });
    for (const dryRun of ['true', 1, null, undefined]) {
      expect(parse(POD, { dryRun })).toMatchObject({ dryRun: false });
    }
  });

  it('of a cluster-scoped object has an empty namespace', () => {
    expect(parse(POD, { namespace: undefined })).toMatchObject({ namespace: '' });
  });

  it.each([undefined, null, '', 7, {}, 'n'.repeat(254)])('with the uid %j cannot be answered', (uid) => {
    expect(parse(POD, { uid })).toBe('the review has no request with a uid');
  });

  it.each([{ request: undefined }, { request: [] }, { kind: 'Pod' }, { apiVersion: 'v1' }])(
    'that is none is told from one: %j',
    (fields) => {
      const body = JSON.stringify({ ...JSON.parse(reviewOf(POD)), ...fields });
      expect(parseAdmissionReview(Buffer.from(body))).toEqual(expect.any(String));
    },
  );
});

describe('a pod', () => {
  it.each<[string, unknown]>([
    ['without lists', { metadata: {}, spec: {} }],
    ['with names as long as they may be', { metadata: { name: LONGEST, generateName: LONGEST }, spec: {} }],
    ['with owners', { metadata: { ownerReferences: [OWNER, OWNER] }, spec: {} }],
    ['with annotations', { metadata: { annotations: { a: '1', b: '' } }, spec: {} }],
    ['with lists that are null', { metadata: {}, spec: { initContainers: null, volumes: null } }],
  ])('%s has the shape of one', (_, pod) => {
    expect(parse(pod)).toMatchObject({ pod });
  });

  it.each<[string, unknown]>([
    ['nothing', null],
    ['a list', []],
    ['without metadata', { spec: {} }],
    ['without a spec', { metadata: {} }],
    ['with a name too long', { metadata: { name: `${LONGEST}n` }, spec: {} }],
    ['with a generateName too long', { metadata: { generateName: `${LONGEST}n` }, spec: {} }],
    ['with owners that are no list', { metadata: { ownerReferences: OWNER }, spec: {} }],
    ...Object.keys(OWNER).map((key): [string, unknown] => [
      `with an owner without ${key} beside a right one`,
      { metadata: { ownerReferences: [OWNER, { ...OWNER, [key]: undefined }] }, spec: {} },
    ]),
    ['with annotations that are a list', { metadata: { annotations: [] }, spec: {} }],
    ['with one annotation that is no text', { metadata: { annotations: { a: '1', b: 1 } }, spec: {} }],
    ...['containers', 'initContainers', 'volumes'].flatMap((list): [string, unknown][] => [
      [`with ${list} that are no list`, { metadata: {}, spec: { [list]: {} } }],
      [`with one of ${list} that is no object`, { metadata: {}, spec: { [list]: [{}, 'app'] } }],
    ]),
  ])('%s has not', (_, pod) => {
    expect(parse(pod)).toBe("the review's object does not have the shape of a Pod");
  });
});

describe('an answer', () => {
  const response = (...args: Parameters<typeof admissionResponse>) => JSON.parse(admissionResponse(...args));
  const envelope = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' };

  it('that allows has no status', () => {
    expect(response('abc', { allowed: true, patch: [], warnings: [] })).toEqual({
      ...envelope,
      response: { uid: 'abc', allowed: true },
    });
  });

  it('carries the patch in Base64, warnings and the audit', () => {
    const patch = [{ op: 'add', path: '/a', value: 1 }] as const;
    expect(response('abc', { allowed: true, patch, warnings: ['w'], audit: { result: 'x' } })).toEqual({
      ...envelope,
      response: {
        uid: 'abc',
        allowed: true,
        patchType: 'JSONPatch',
        patch: Buffer.from(JSON.stringify(patch)).toString('base64'),
        warnings: ['w'],
        auditAnnotations: { result: 'x' },
      },
    });
  });

  it('that refuses says why, as Forbidden', () => {
    expect(response('abc', { allowed: false, message: 'no' })).toEqual({
      ...envelope,
      response: { uid: 'abc', allowed: false, status: { code: 403, reason: 'Forbidden', message: 'no' } },
    });
  });
});
