/** Manifests of several documents, of lists, and of what is no workload. */

import { describe, expect, it } from 'vitest';
import { parse, parseDocument, stringify } from 'yaml';
import { applyToDocument, injectManifests } from '../../src/injector/manifests/inject-manifests.ts';
import { objectsIn } from '../../src/injector/manifests/pod-templates.ts';
import { ASKING, DEFAULTS } from './defaults.ts';

const OPTIONS = { defaults: DEFAULTS, cluster: {}, namespace: 'fallback' };
const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'shop', annotations: ASKING },
  spec: { containers: [{ name: 'app' }] },
};
const text = (...documents: unknown[]): string =>
  documents.map((document) => stringify(document)).join('---\n');

describe('objects', () => {
  it.each<[string, unknown]>([
    ['nothing', null],
    ['a list', [POD]],
    ['text', 'Pod'],
    ['no kind', { apiVersion: 'v1' }],
    ['no version', { kind: 'Pod' }],
    ['a version that is a list', { ...POD, apiVersion: ['v1'] }],
    ['a kind that is a list', { ...POD, kind: ['Pod'] }],
    ['a list of other things', { apiVersion: 'v1', kind: 'PodList', items: [null, 'Pod', [], 1] }],
    [
      'a list whose items do not say what they are',
      { apiVersion: 'v1', kind: 'List', items: [{ spec: {} }] },
    ],
  ])('are none in %s', (_, manifest) => {
    expect(objectsIn(manifest)).toEqual([]);
  });

  it.each<[string, object]>([
    ['a Service', { apiVersion: 'v1', kind: 'Service', spec: { ports: [{ port: 80 }] } }],
    ['items that are no list', { apiVersion: 'v1', kind: 'PodList', items: POD }],
    ['a Pod of another group', { ...POD, apiVersion: 'v2' }],
    ['containers beside no pod', { apiVersion: 'a/v1', kind: 'SidecarSet', spec: { containers: [{}] } }],
    ['no containers', { apiVersion: 'apps/v1', kind: 'Deployment', spec: { template: { spec: {} } } }],
    [
      'a template of no pod',
      { apiVersion: 'a/v1', kind: 'NodePool', spec: { template: { spec: { a: 1 } } } },
    ],
    [
      'another kind of containers',
      { apiVersion: 'a/v1', kind: 'B', spec: { a: { spec: { containers: ['c'] } } } },
    ],
  ])('with %s have no pod template', (_, manifest) => {
    expect(objectsIn(manifest)).toMatchObject([{ templates: [] }]);
  });

  it('are found in lists of lists, each with where its pod is', () => {
    const cron = {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: { name: 'nightly', namespace: 'jobs' },
      spec: { jobTemplate: { spec: { template: { spec: POD.spec } } } },
    };
    const list = {
      apiVersion: 'v1',
      kind: 'List',
      items: [POD, { apiVersion: 'batch/v1', kind: 'CronJobList', items: [cron] }],
    };
    expect(objectsIn(list)).toMatchObject([
      { name: 'Pod shop', namespace: undefined, templates: [{ path: ['items', 0] }] },
      {
        name: 'CronJob nightly',
        namespace: 'jobs',
        templates: [{ path: ['items', 1, 'items', 0, 'spec', 'jobTemplate', 'spec', 'template'] }],
      },
    ]);
  });

  it.each([
    [{ name: 'a', generateName: 'b-' }, 'Job a'],
    [{ generateName: 'b-' }, 'Job b-'],
    [{}, 'Job'],
    [undefined, 'Job'],
  ])('with metadata %j have the name %s', (metadata, name) => {
    expect(objectsIn({ apiVersion: 'batch/v1', kind: 'Job', metadata })).toMatchObject([{ name }]);
  });

  it.each([
    [{ annotations: { a: 'b' } }, { a: 'b' }],
    [{ annotations: ['a'] }, {}],
    [{ namespace: 1 }, {}],
  ])('with metadata %j have the annotations %j of their own', (metadata, ownAnnotations) => {
    expect(objectsIn({ apiVersion: 'batch/v1', kind: 'Job', metadata })).toMatchObject([
      { ownAnnotations, namespace: undefined },
    ]);
  });
});

describe('the namespace of a workload', () => {
  const off = (name: string) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, labels: { 'token-sidecar.dev/injection': 'disabled' } },
  });
  const inNamespace = { ...POD, metadata: { ...POD.metadata, namespace: 'team' } };

  it.each<[string, readonly unknown[], string]>([
    ['its own', [off('team'), inNamespace], 'skipped: namespace_excluded'],
    ['its own, wherever that stands', [inNamespace, off('team')], 'skipped: namespace_excluded'],
    ['the one that is asked for', [off('fallback'), POD], 'skipped: namespace_excluded'],
    ['not another', [off('other'), inNamespace], 'injected: native'],
    ['not the one asked for where it has its own', [off('fallback'), inNamespace], 'injected: native'],
    ['not what is no Namespace', [{ ...off('team'), kind: 'Team' }, inNamespace], 'injected: native'],
    ['not one without a name', [{ ...off('team'), metadata: {} }, inNamespace], 'injected: native'],
    ['not one without metadata', [{ ...off('team'), metadata: null }, inNamespace], 'injected: native'],
    ['one without labels', [{ ...off('team'), metadata: { name: 'team' } }, inNamespace], 'injected: native'],
  ])('is %s', (_, documents, outcome) => {
    expect(injectManifests(text(...documents), OPTIONS).notes).toContain(`Pod shop: ${outcome}`);
  });
});

describe('documents that have no workload to change', () => {
  it('stay as they are to the character, before and behind one that has', () => {
    const before = '# head\n{a:    1}\n';
    const behind = "b:   '2'\n...\n# the end\n";
    const { text: after } = injectManifests(`${before}---\n${text(POD)}---\n${behind}`, OPTIONS);
    expect(after.startsWith(`${before}---\n`)).toBe(true);
    expect(after.endsWith(`---\n${behind}`)).toBe(true);
    expect(after).toContain('name: token-sidecar');
  });

  it('are no reason to write anything anew', () => {
    const odd = 'a:    {b:   1}\n';
    expect(injectManifests(odd, OPTIONS)).toEqual({ text: odd, notes: [], problems: [] });
  });
});

it('one workload that cannot have the sidecar keeps all from being changed', () => {
  const bad = {
    ...POD,
    metadata: { ...POD.metadata, name: 'bad' },
    spec: { ...POD.spec, hostNetwork: true },
  };
  const manifests = text(POD, bad);
  expect(injectManifests(manifests, OPTIONS)).toEqual({
    text: manifests,
    notes: ['Pod shop: injected: native'],
    problems: [expect.stringMatching(/^Pod bad: .*hostNetwork/)],
  });
});

it.each([{ spec: null }, {}])('a workload with %j has no pod template', (rest) => {
  const manifests = text({ apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'j' }, ...rest });
  expect(injectManifests(manifests, OPTIONS)).toEqual({
    text: manifests,
    notes: ['Job j: skipped: no_pod_template'],
    problems: [],
  });
});

it('JSON is written as JSON, with an end of line', () => {
  const { text: after } = injectManifests(JSON.stringify(POD), OPTIONS);
  expect(after).toBe(`${JSON.stringify(JSON.parse(after), null, 2)}\n`);
});

describe('the style of the author', () => {
  const written = (source: string): string => injectManifests(source, OPTIONS).text;
  const pod = (indent: number, extra = '', seq = false): string =>
    `${stringify(POD, { indent, indentSeq: seq, lineWidth: 0 })}${extra}`;

  it.each([2, 4])('keeps an indentation of %i', (indent) => {
    expect(written(pod(indent))).toContain(`\n${' '.repeat(indent)}initContainers:\n`);
  });

  it.each([
    [false, `spec:\n  containers:\n  - name: app\n`],
    [true, `spec:\n  containers:\n    - name: app\n`],
    [false, `spec:\n  containers:\n  # the app\n  # and its comment\n  - name: app\n`],
    [true, `spec:\n  containers:\n    # the app\n    - name: app\n`],
    [false, `spec:\n  containers: \t\n  - name: app\n`],
  ])('indents lists (%s) as in %j', (indented, spec) => {
    const { spec: _, ...rest } = POD;
    const after = written(`${stringify(rest)}${spec}`);
    expect(after).toContain(indented ? '\n  initContainers:\n    - name:' : '\n  initContainers:\n  - name:');
  });

  it.each([
    ['{ a: 1 }', '{ a: 1 }'],
    ['{a: 1}', '{a: 1}'],
    ['[1, 2]', '[1, 2]'],
    ['[ 1, 2 ]', '[ 1, 2 ]'],
    ['{}', '{}'],
  ])('leaves %s in its brackets', (flow, kept) => {
    expect(written(`${pod(2)}other: ${flow}\n`)).toContain(`other: ${kept}\n`);
  });

  it('breaks no long line', () => {
    const note = 'word '.repeat(60).trim();
    expect(written(`${pod(2)}note: ${note}\n`)).toContain(`note: ${note}\n`);
  });
});

it('merge keys count, and what they bring is read', () => {
  const { metadata, ...rest } = POD;
  const manifests = `${stringify(rest)}metadata:\n  <<: ${JSON.stringify({ name: 'shop', annotations: ASKING })}\n`;
  expect(parse(manifests, { merge: true }).metadata).toEqual(metadata);
  const { problems } = injectManifests(manifests, OPTIONS);
  expect(problems).toEqual([expect.stringContaining('metadata.annotations is shared')]);
});

it.each(['{}', '{"<<": {b: {}}}', '{? [<<] : {b: {}}}', '{? {b: 1} : 2}'])(
  '%s merges nothing: what is not there can be made',
  (map) => {
    const document = parseDocument(`a: ${map}\n`, { merge: true });
    expect(applyToDocument(document, ['a'], [{ op: 'add', path: '/b/c', value: 1 }])).toBeUndefined();
    expect(document.getIn(['a', 'b', 'c'])).toBe(1);
  },
);

it('what a merge brings is named by where it is, however deep', () => {
  const document = parseDocument('x:\n  a:\n    <<: {b: {}}\n  b: {}\n', { merge: true });
  const patch = [{ op: 'add', path: '/b/c', value: 1 }] as const;
  expect(applyToDocument(document, ['x', 'a'], patch)).toContain('x.a.b is shared');
  expect(applyToDocument(document, ['x'], patch)).toBeUndefined();
});
