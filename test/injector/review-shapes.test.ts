import { describe, expect, it } from 'vitest';
import { admissionResponse, parseAdmissionReview } from '../../src/injector/admission.ts';
import { reviewOf } from './review.ts';

const POD = { metadata: { name: 'shop' }, spec: { containers: [{ name: 'app' }] } };
const OWNER = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'shop-7', uid: 'u' };
const parsed = (body: string) => parseAdmissionReview(Buffer.from(body));
const longest = 'n'.repeat(253);

describe('what is no review', () => {
  it.each([
    ['{', 'the body is not JSON'],
    ['null', 'the body is no AdmissionReview of admission.k8s.io/v1'],
    ['[]', 'the body is no AdmissionReview of admission.k8s.io/v1'],
    [
      '{"apiVersion":"admission.k8s.io/v1","kind":"Review"}',
      'the body is no AdmissionReview of admission.k8s.io/v1',
    ],
    ['{"apiVersion":"v1","kind":"AdmissionReview"}', 'the body is no AdmissionReview of admission.k8s.io/v1'],
    [
      '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":1}',
      'the review has no request with a uid',
    ],
    [reviewOf(POD, { uid: '' }), 'the review has no request with a uid'],
    [reviewOf(POD, { uid: 1 }), 'the review has no request with a uid'],
    [reviewOf(POD, { uid: `${longest}n` }), 'the review has no request with a uid'],
    [reviewOf(POD, { namespace: {} }), 'the namespace of the review is no name'],
  ])('%s is told so', (body, reason) => {
    expect(parsed(body)).toBe(reason);
  });

  it.each<[string, unknown]>([
    ['nothing', null],
    ['a list', []],
    ['no metadata', { spec: {} }],
    ['metadata that are a list', { metadata: [], spec: {} }],
    ['no spec', { metadata: {} }],
    ['a spec that is text', { metadata: {}, spec: 'x' }],
    ['a name that is none', { ...POD, metadata: { name: 1 } }],
    ['a generated name that is none', { ...POD, metadata: { generateName: `${longest}n` } }],
    ['owners that are no list', { ...POD, metadata: { ownerReferences: {} } }],
    [
      'an owner without a uid',
      { ...POD, metadata: { ownerReferences: [OWNER, { ...OWNER, uid: undefined }] } },
    ],
    ['an owner of no version', { ...POD, metadata: { ownerReferences: [{ ...OWNER, apiVersion: 1 }] } }],
    ['an owner of no kind', { ...POD, metadata: { ownerReferences: [{ ...OWNER, kind: null }] } }],
    ['an owner with no name', { ...POD, metadata: { ownerReferences: [{ ...OWNER, name: [] }] } }],
    ['annotations that are a list', { ...POD, metadata: { annotations: ['x'] } }],
    ['an annotation that is no text', { ...POD, metadata: { annotations: { a: 'x', b: 1 } } }],
    ['containers that are none', { ...POD, spec: { containers: [POD, 'app'] } }],
    ['init containers that are none', { ...POD, spec: { initContainers: [null] } }],
    ['volumes that are none', { ...POD, spec: { volumes: {} } }],
  ])('of a pod with %s', (_, object) => {
    expect(parsed(reviewOf(object))).toBe("the review's object does not have the shape of a Pod");
    // What is not made is not looked at.
    expect(parsed(reviewOf(object, { operation: 'UPDATE' }))).toMatchObject({ pod: undefined });
  });
});

describe('a review', () => {
  it.each<[string, unknown]>([
    ['as little as there may be', { metadata: {}, spec: {} }],
    [
      'lists that are null',
      { metadata: { annotations: null, ownerReferences: null }, spec: { containers: null } },
    ],
    ['the longest of names', { metadata: { name: longest, generateName: longest }, spec: {} }],
    [
      'everything',
      { metadata: { ownerReferences: [OWNER], annotations: { a: 'b' } }, spec: { volumes: [{}] } },
    ],
  ])('may have %s', (_, object) => {
    expect(parsed(reviewOf(object, { namespace: longest }))).toEqual({
      uid: 'uid',
      namespace: longest,
      dryRun: false,
      pod: object,
    });
  });

  it.each([
    [{ kind: { group: '', kind: 'Pod' } }, true],
    [{ kind: { group: 'metrics.k8s.io', kind: 'Pod' } }, false],
    [{ kind: { group: '', kind: 'Service' } }, false],
    [{ kind: 'Pod' }, false],
    [{ subResource: '' }, true],
    [{ subResource: null }, true],
    [{ subResource: 'eviction' }, false],
    [{ operation: 'DELETE' }, false],
  ])('with %j is about a new pod: %s', (request, isNew) => {
    expect(parsed(reviewOf(POD, request))).toMatchObject({ pod: isNew ? POD : undefined });
  });

  it('is a dry run when it says so, and of no namespace when it names none', () => {
    expect(parsed(reviewOf(POD, { dryRun: true, namespace: undefined }))).toMatchObject({
      dryRun: true,
      namespace: '',
    });
    expect(parsed(reviewOf(POD, { dryRun: 'true' }))).toMatchObject({ dryRun: false });
  });
});

describe('an answer', () => {
  const answered = (verdict: Parameters<typeof admissionResponse>[1]) =>
    JSON.parse(admissionResponse('u', verdict));

  it('says no more than there is to say', () => {
    expect(answered({ allowed: true, patch: [], warnings: [] })).toEqual({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      response: { uid: 'u', allowed: true },
    });
  });

  it('has all that the API server may be told', () => {
    const patch = [{ op: 'add', path: '/é', value: 1 }] as const;
    expect(
      answered({ allowed: false, patch, message: 'no', warnings: ['w'], audit: { a: 'b' } }).response,
    ).toEqual({
      uid: 'u',
      allowed: false,
      patchType: 'JSONPatch',
      patch: Buffer.from(JSON.stringify(patch)).toString('base64'),
      status: { code: 403, reason: 'Forbidden', message: 'no' },
      warnings: ['w'],
      auditAnnotations: { a: 'b' },
    });
  });
});
