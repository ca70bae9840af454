import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { injectManifests } from '../../src/injector/manifests/inject-manifests.ts';
import { ASKING, DEFAULTS } from './defaults.ts';

const options = { defaults: DEFAULTS, cluster: {}, namespace: 'default' };
const asking = Object.entries(ASKING)
  .map(([name, value]) => `    ${name}: "${value}"`)
  .join('\n');
const POD = `apiVersion: v1\nkind: Pod\nmetadata:\n  name: shop\n  annotations:\n${asking}\nspec:\n  containers: [{name: app}]\n`;

it('JSON stays JSON', () => {
  const { text } = injectManifests(JSON.stringify(parse(POD)), options);

  expect(JSON.parse(text).spec.initContainers[0].name).toBe('token-sidecar');
});

it.each(['', '# nothing\n', '---\n', 'just text\n', 'a: 1\n---\n- b\n'])('%j is passed on', (text) => {
  expect(injectManifests(text, options)).toMatchObject({ text, problems: [] });
});

it('reports what is not YAML, and where', () => {
  expect(injectManifests('a: [1', options).problems).toEqual([expect.stringContaining('line 1')]);
});

it('reports an alias without an anchor, and in which document', () => {
  expect(injectManifests(`${POD}---\nhost: *.example.com\n`, options).problems).toEqual([
    expect.stringMatching(/^document 2: expected aliases that name an anchor .* begins with \*$/),
  ]);
});

it('reports every workload that cannot have what it asks for', () => {
  const bad = POD.replace('https://api.example.com', 'ftp://x');
  const { problems } = injectManifests(`${bad}---\n${POD}---\n${bad.replace('shop', 'till')}`, options);

  expect(problems).toEqual([
    expect.stringMatching(/^Pod shop: .*upstream: "ftp:\/\/x"/),
    expect.stringMatching(/^Pod till: /),
  ]);
});

it('heeds a namespace that stands beside and is switched off', () => {
  const namespace = `apiVersion: v1\nkind: Namespace\nmetadata: {name: quiet, labels: {token-sidecar.dev/injection: disabled}}\n`;
  const manifests = `${namespace}---\n${POD.replace('name: shop', 'name: shop\n  namespace: quiet')}`;

  expect(injectManifests(manifests, options)).toMatchObject({
    text: manifests,
    notes: [
      'Namespace quiet: skipped: no_pod_template',
      expect.stringContaining('warning'),
      'Pod shop: skipped: namespace_excluded',
    ],
  });
});

const annotated = (annotations: string, template = '{spec: {containers: [{name: app}]}}'): string =>
  `apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: shop\n  annotations: ${annotations}\nspec:\n  template: ${template}\n`;
const INJECT = '{token-sidecar.dev/inject: "true"}';

it('refuses a workload that asks for the sidecar beside its pod template', () => {
  expect(injectManifests(annotated(INJECT), options).problems).toEqual([
    'Deployment shop: token-sidecar.dev/inject must stand on the pod template, not on the workload',
  ]);
});

it.each([
  [INJECT, '"false"', 'token-sidecar.dev/inject must stand on the pod template, not on the workload'],
  [
    '{token-sidecar.dev/realm: dx}',
    undefined,
    'token-sidecar.dev/realm must stand on the pod template, not on the workload; so must token-sidecar.dev/inject',
  ],
])('warns of %s on a workload whose template has inject: %s', (own, inject, warning) => {
  const metadata = inject === undefined ? '{}' : `{annotations: {token-sidecar.dev/inject: ${inject}}}`;
  const deployment = annotated(own, `{metadata: ${metadata}, spec: {containers: [{name: app}]}}`);

  expect(injectManifests(deployment, options)).toEqual({
    text: deployment,
    notes: [`Deployment shop: warning: ${warning}`, 'Deployment shop: skipped: not_requested'],
    problems: [],
  });
});

it.each([
  ['an object within another object', `spec:\n  base:\n${POD.replace(/^/gm, '    ')}`],
  ['a mapping that holds itself', 'spec: &all\n  all: *all\n  both: *all\n'],
])('%s is passed on', (_, spec) => {
  const text = `apiVersion: example.com/v1\nkind: Composition\nmetadata:\n  name: shop\n${spec}`;
  expect(injectManifests(text, options)).toMatchObject({ text, problems: [] });
});

it('annotations that were given to every object harm none without pods', () => {
  const service = `apiVersion: v1\nkind: Service\nmetadata: {name: shop, annotations: ${INJECT}}\n`;

  expect(injectManifests(service, options)).toEqual({
    text: service,
    notes: [
      'Service shop: warning: token-sidecar.dev/inject has no effect: there is no pod template',
      'Service shop: skipped: no_pod_template',
    ],
    problems: [],
  });
});

it('refuses an object that asks for the sidecar of pods whose template it does not hold', () => {
  const prometheus = `apiVersion: monitoring.coreos.com/v1\nkind: Prometheus\nmetadata: {name: main}\nspec: {podMetadata: {annotations: ${INJECT}}}\n`;

  expect(injectManifests(prometheus, options).problems).toEqual([
    expect.stringMatching(
      /^Prometheus main: asks for the sidecar in spec\.podMetadata\.annotations, but has no pod template there\. .* webhook adds/,
    ),
  ]);
});

describe('a Knative Service', () => {
  const service = (inject: string): string =>
    `apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: shop}\nspec: {template: {metadata: {annotations: {token-sidecar.dev/inject: ${inject}}}, spec: {containers: [{image: shop}]}}}\n`;

  it('is refused if it asks for the sidecar, as Knative would refuse it', () => {
    expect(injectManifests(service('"true"'), options).problems).toEqual([
      expect.stringMatching(/^Service shop: asks for the sidecar, but Knative takes no init containers/),
    ]);
  });

  it('is passed on if it does not ask', () => {
    expect(injectManifests(service('"false"'), options)).toMatchObject({
      notes: ['Service shop: skipped: not_requested'],
      problems: [],
    });
  });
});

it.each([
  ['inject', 'true'],
  ['inject', ''],
  ['cpu-limit', '1'],
  ['status', '[injected]'],
])('the annotation %s with the value %s, without quotes, is refused by its name', (name, value) => {
  const annotation = `token-sidecar.dev/${name}`;
  const others = asking.replace(new RegExp(`^ +${annotation}:.*$`, 'm'), '');
  const pod = POD.replace(asking, `${others}\n    ${annotation}: ${value}`);

  expect(injectManifests(pod, options).problems).toEqual([
    `Pod shop: ${annotation}: expected text: put the value in quotes`,
  ]);
});

it.each([
  [
    'an alias',
    `x: &spec {containers: [{name: app}]}\n${POD.replace('spec:\n  containers: [{name: app}]', 'spec: *spec')}`,
  ],
  ['an anchor', `${POD.replace('spec:\n', 'spec: &spec\n')}other: *spec\n`],
  [
    'a merge',
    `${POD.replace('spec:\n  containers: [{name: app}]', 'spec:\n  <<: {containers: [{name: app}]}')}`,
  ],
])('what is shared by %s is changed nowhere: the author must write it out', (_, text) => {
  const { problems, text: after } = injectManifests(text, options);
  // A merge that is not touched may stay.
  if (problems.length === 0) expect(parse(after, { merge: true }).spec.containers).toEqual([{ name: 'app' }]);
  else expect(problems).toEqual([expect.stringContaining('write it out')]);
});

it('keeps documents apart that end with "..."', () => {
  const { text } = injectManifests(`${POD}...\n# second\na: 1\n`, options);

  expect(parseAllDocuments(text).map((document) => document.toJS())).toMatchObject([
    { kind: 'Pod' },
    { a: 1 },
  ]);
});

it('the pods of a typed list need not say what they are', () => {
  const { apiVersion, kind, ...pod } = parse(POD);
  const list = JSON.stringify({ apiVersion, kind: `${kind}List`, items: [pod, pod] });
  const { text, problems } = injectManifests(list, options);

  expect(problems).toEqual([]);
  for (const { spec } of JSON.parse(text).items) expect(spec.initContainers[0].name).toBe('token-sidecar');
});
