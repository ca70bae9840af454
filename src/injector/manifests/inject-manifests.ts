import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseAllDocuments,
  type ToStringOptions,
} from 'yaml';
import { ALIASES, expectedYaml } from '../../config/yaml.ts';
import type { InjectionDefaults } from '../injection-defaults.ts';
import { ANNOTATION, ANNOTATION_PREFIX } from '../pod/annotations.ts';
import type { Cluster, Profiles } from '../pod/cluster.ts';
import { inject } from '../pod/inject.ts';
import { type JsonPatch, segmentsOf } from '../pod/json-patch.ts';
import type { Namespace, Pod } from '../pod/pod.ts';
import { asks, isObject, type ManifestObject, objectsIn, type PodTemplate } from './pod-templates.ts';

interface InjectedManifests {
  /** Unchanged documents keep every character. */
  readonly text: string;
  /** One line each. */
  readonly notes: readonly string[];
  /** If there are any, `text` must not be used. */
  readonly problems: readonly string[];
}

interface ManifestOptions {
  readonly defaults: InjectionDefaults;
  readonly cluster: Cluster;
  /** For workloads that name none. */
  readonly namespace: string;
  /** Finds profiles in all documents together. */
  readonly profilesIn?: (contents: readonly unknown[]) => Profiles;
}

/** YAML or JSON. */
export function injectManifests(text: string, options: ManifestOptions): InjectedManifests {
  const { documents, contents, problems: unread } = readManifestDocuments(text);
  if (unread.length > 0) return { text, notes: [], problems: unread };

  const labels = namespaceLabels(contents);
  const profiles = options.profilesIn?.(contents);
  const settled =
    profiles === undefined ? options : { ...options, cluster: { ...options.cluster, profiles } };
  const notes: string[] = [];
  const problems: string[] = [];
  const changed = documents.map((document, index) =>
    injectDocument(document, contents[index], settled, labels, { notes, problems }),
  );
  if (problems.length > 0 || !changed.includes(true)) return { text, notes, problems };
  return { text: isJson(text) ? toJson(documents) : toYaml(text, documents, changed), notes, problems };
}

interface Report {
  readonly notes: string[];
  readonly problems: string[];
}

/** @returns whether it changed. */
function injectDocument(
  document: Document,
  content: unknown,
  options: ManifestOptions,
  labels: ReadonlyMap<string, Namespace['labels']>,
  report: Report,
): boolean {
  let changed = false;
  for (const object of objectsIn(content)) {
    reportMisplaced(object, report);
    if (object.templates.length === 0) report.notes.push(`${object.name}: skipped: no_pod_template`);
    const name = object.namespace ?? options.namespace;
    const known = labels.get(name);
    const namespace = { name, ...(known === undefined ? {} : { labels: known }) };
    for (const template of object.templates) {
      if (object.refusal !== undefined && asks(annotationsOf(template.pod))) {
        report.problems.push(`${template.name}: asks for the sidecar, but ${object.refusal}. ${LEAVE_OUT}`);
      } else if (injectTemplate(document, template, namespace, options, report)) {
        changed = true;
      }
    }
  }
  return changed;
}

const LEAVE_OUT =
  'If the injector runs in the cluster, leave it out of these manifests: its webhook adds the sidecar to the pods';

/** @returns whether it changed. */
function injectTemplate(
  document: Document,
  { name, path, pod }: PodTemplate,
  namespace: Namespace,
  { defaults, cluster }: ManifestOptions,
  { notes, problems }: Report,
): boolean {
  const unquoted = annotationsWithoutText(pod);
  if (unquoted.length > 0) {
    problems.push(`${name}: ${unquoted.join(', ')}: expected text: put the value in quotes`);
    return false;
  }
  const injection = inject(pod, namespace, defaults, cluster);
  if (injection.result === 'rejected') {
    problems.push(`${name}: ${injection.message}`);
    return false;
  }
  for (const warning of injection.warnings) notes.push(`${name}: warning: ${warning}`);
  if (injection.result === 'skipped') {
    notes.push(`${name}: skipped: ${injection.reason}`);
    return false;
  }
  const obstacle = applyToDocument(document, path, injection.patch);
  if (obstacle !== undefined) {
    problems.push(`${name}: ${obstacle}`);
    return false;
  }
  notes.push(`${name}: injected: ${injection.reason}`);
  return true;
}

/** Annotations that no pod gets. */
function reportMisplaced(object: ManifestObject, { notes, problems }: Report): void {
  const { name, ownAnnotations, templates, asksAt } = object;
  for (const place of asksAt) {
    problems.push(`${name}: asks for the sidecar in ${place}, but has no pod template there. ${LEAVE_OUT}`);
  }
  const own = Object.keys(ownAnnotations).filter((annotation) => annotation.startsWith(ANNOTATION_PREFIX));
  const annotations = templates.map(({ pod }) => annotationsOf(pod));
  if (own.length === 0 || annotations.some(asks)) return;
  if (templates.length === 0) {
    notes.push(`${name}: warning: ${own.join(', ')} has no effect: there is no pod template`);
    return;
  }
  const misplaced = `${own.join(', ')} must stand on the pod template, not on the workload`;
  if (asks(ownAnnotations) && annotations.every((one) => one[ANNOTATION.inject] === undefined)) {
    problems.push(`${name}: ${misplaced}`);
  } else {
    const too = own.includes(ANNOTATION.inject) ? '' : `; so must ${ANNOTATION.inject}`;
    notes.push(`${name}: warning: ${misplaced}${too}`);
  }
}

function annotationsOf({ metadata }: Pod): Readonly<Record<string, unknown>> {
  return metadata?.annotations ?? {};
}

/** YAML reads some values as no text, such as `true` or `10`. The API server would refuse them. */
function annotationsWithoutText(pod: Pod): string[] {
  return Object.entries(annotationsOf(pod))
    .filter(([name, value]) => name.startsWith(ANNOTATION_PREFIX) && typeof value !== 'string')
    .map(([name]) => name);
}

function namespaceLabels(contents: readonly unknown[]): ReadonlyMap<string, Namespace['labels']> {
  const found = new Map<string, Namespace['labels']>();
  for (const content of contents) {
    if (!isObject(content) || content['kind'] !== 'Namespace' || !isObject(content['metadata'])) continue;
    const { name, labels } = content['metadata'] as { name?: string; labels?: Record<string, string> };
    if (name !== undefined) found.set(name, labels ?? {});
  }
  return found;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function toJson(documents: readonly Document[]): string {
  return `${JSON.stringify((documents[0] as Document).toJS(), null, 2)}\n`;
}

function toYaml(text: string, documents: readonly Document[], changed: readonly boolean[]): string {
  let start = 0;
  return documents
    .map((document, index) => {
      const end = index === documents.length - 1 ? text.length : (document.range?.[2] ?? text.length);
      const source = text.slice(start, end);
      start = end;
      if (changed[index] !== true) return source;
      return document.toString(styleOf(source));
    })
    .join('');
}

/** The author's style, so that a diff shows little but the sidecar. */
function styleOf(source: string): ToStringOptions {
  const indentation = /^( +)\S/m.exec(source)?.[1]?.length ?? 2;
  const [padded, tight] = [/[[{] +[^\s\]}]/g, /[[{][^\s\]}]/g].map(
    (style) => source.match(style)?.length ?? 0,
  );
  return {
    lineWidth: 0,
    indent: Math.min(Math.max(indentation, 2), 8),
    // Whether `- ` is indented further than its key.
    indentSeq: !/^( *)(?:- )?[^\s#-][^\n]*:[ \t]*\n(?: *#[^\n]*\n)*\1- /m.test(source),
    flowCollectionPadding: (padded ?? 0) >= (tight ?? 0),
  };
}

/**
 * Comments and order stay.
 * @returns what prevents it, with nothing changed, or undefined.
 */
export function applyToDocument(
  document: Document,
  path: readonly (string | number)[],
  patch: JsonPatch,
): string | undefined {
  const additions = patch.map(({ path: at, value }) => ({ target: [...path, ...segmentsOf(at)], value }));
  const shared = additions
    .map(({ target }) => sharedNode(document, target))
    .find((found) => found !== undefined);
  if (shared !== undefined) return `${shared} is shared by an anchor and an alias, or merged: write it out`;
  for (const { target, value } of additions) {
    const parent = document.getIn(target.slice(0, -1));
    const last = target.at(-1) as string;
    // So that no value becomes an alias.
    const node = document.createNode(structuredClone(value), { aliasDuplicateObjects: false });
    if (isSeq(parent)) parent.items.splice(last === '-' ? parent.items.length : Number(last), 0, node);
    else document.setIn(target, node);
  }
  return undefined;
}

/** The first node on the way that also stands elsewhere, where a change would show, too. */
function sharedNode(document: Document, target: readonly (string | number)[]): string | undefined {
  for (let length = 1; length < target.length; length++) {
    const path = target.slice(0, length);
    const node = document.getIn(path, true);
    if (node === undefined && isMerged(document, path)) return path.join('.');
    if (!isNode(node)) return undefined;
    if (isAlias(node) || (node as Node & { anchor?: string }).anchor !== undefined) return path.join('.');
  }
  return undefined;
}

function isMerged(document: Document, path: readonly (string | number)[]): boolean {
  const parent = document.getIn(path.slice(0, -1));
  return isMap(parent) && parent.items.some(({ key }) => isMergeKey(key));
}

/** The library has a symbol for a `<<` that merges; a quoted one is text. */
function isMergeKey(key: unknown): boolean {
  return isScalar(key) && typeof key.value === 'symbol';
}

// Mistakes name code and place only: a Secret may be among the manifests.

interface ManifestDocuments {
  readonly documents: readonly Document[];
  /** Empty if there are problems. */
  readonly contents: readonly unknown[];
  readonly problems: readonly string[];
}

export function readManifestDocuments(text: string): ManifestDocuments {
  const lineCounter = new LineCounter();
  // Merges `<<` as kubectl does. Pretty errors and warnings would quote the text.
  const documents: readonly Document[] = parseAllDocuments(text, {
    merge: true,
    prettyErrors: false,
    lineCounter,
    logLevel: 'error',
  });
  const mistakes = documents.flatMap(({ errors }) =>
    errors.map(({ code, pos: [from] }) => {
      const { line, col } = lineCounter.linePos(from);
      return `line ${line}, column ${col}: expected ${expectedYaml('valid YAML or JSON', code)}`;
    }),
  );
  if (mistakes.length > 0) return { documents, contents: [], problems: mistakes };
  const problems: string[] = [];
  const contents = documents.map((document, index) => contentOf(document, index, problems));
  return { documents, contents: problems.length > 0 ? [] : contents, problems };
}

/** Unresolvable aliases (`host: *.example.com`) are added to `problems`. */
function contentOf(document: Document, index: number, problems: string[]): unknown {
  try {
    return document.toJS();
  } catch {
    problems.push(`document ${index + 1}: expected ${ALIASES}`);
    return undefined;
  }
}
