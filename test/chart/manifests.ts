/** Rendered manifests and the parts of them that tests ask for. */

import { readdir } from 'node:fs/promises';
import { parseAllDocuments } from 'yaml';
import { CHART, type Outcome, run } from './tools.ts';

/** Loosely typed on purpose: what a field holds is what the tests find out. */
// biome-ignore lint/suspicious/noExplicitAny: see above
export type Manifest = any;

export const OLDEST_KUBERNETES = '1.28';
export const NEWEST_KUBERNETES = '1.36';
/** With the newest that kubectl-validate brings, between the two. */
export const SUPPORTED_KUBERNETES = [OLDEST_KUBERNETES, '1.30', NEWEST_KUBERNETES] as const;

export const NAMESPACE = 'token-sidecar';

export interface Rendering {
  /** Names of files in the chart's ci folder. */
  readonly ci?: string;
  readonly set?: readonly string[];
  readonly kubernetes?: string;
  readonly args?: readonly string[];
  readonly chart?: string;
}

/** Outcomes by rendering: many tests look at one. */
const outcomes = new Map<string, Promise<Outcome>>();

export function template(rendering: Rendering = {}): Promise<Outcome> {
  const key = JSON.stringify(rendering);
  const known = outcomes.get(key) ?? runTemplate(rendering);
  outcomes.set(key, known);
  return known;
}

function runTemplate(rendering: Rendering): Promise<Outcome> {
  const { ci, set = [], kubernetes = NEWEST_KUBERNETES, args = [], chart = CHART } = rendering;
  return run('helm', [
    'template',
    'token-sidecar',
    chart,
    '--namespace',
    NAMESPACE,
    '--kube-version',
    `${kubernetes}.0`,
    ...(ci === undefined ? [] : ['--values', `${CHART}/ci/${ci}`]),
    ...set.flatMap((value) => ['--set', value]),
    ...args,
  ]);
}

/** The rendered text. @throws when Helm refuses. */
export async function rendered(rendering: Rendering = {}): Promise<string> {
  const { ok, stdout, stderr } = await template(rendering);
  if (!ok) throw new Error(stderr);
  return stdout;
}

export async function manifests(rendering: Rendering = {}): Promise<Manifest[]> {
  return parseManifests(await rendered(rendering));
}

export function parseManifests(text: string): Manifest[] {
  return parseAllDocuments(text).flatMap((document) => {
    if (document.errors.length > 0) throw document.errors[0];
    const value: unknown = document.toJS();
    return value === null ? [] : [value];
  });
}

export function only(all: readonly Manifest[], kind: string): Manifest {
  const found = all.filter((manifest) => manifest.kind === kind);
  if (found.length !== 1) throw new Error(`${found.length} manifests of kind ${kind}, not one`);
  return found[0];
}

/** The values files that chart-testing would take. */
export async function ciValues(): Promise<string[]> {
  return (await readdir(`${CHART}/ci`)).filter((file) => file.endsWith('-values.yaml')).sort();
}

/** Those that render on a Kubernetes version: enforcement needs ValidatingAdmissionPolicy. */
export async function ciValuesFor(kubernetes: string): Promise<string[]> {
  const all = await ciValues();
  return kubernetes === OLDEST_KUBERNETES ? all.filter((file) => file !== 'enforce-values.yaml') : all;
}

/** The pod template of a workload, or the pod itself. */
export function podOf(manifest: Manifest): Manifest | undefined {
  switch (manifest.kind) {
    case 'Pod':
      return manifest;
    case 'Deployment':
    case 'StatefulSet':
    case 'DaemonSet':
    case 'Job':
      return manifest.spec.template;
    case 'CronJob':
      return manifest.spec.jobTemplate.spec.template;
    default:
      return undefined;
  }
}

export function containersOf(pod: Manifest): Manifest[] {
  return [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
}
