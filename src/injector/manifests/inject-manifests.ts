/** Applies the injector's patch to manifests instead of pods: text in, text out. */

import type { Document, ToStringOptions } from 'yaml';
import { ANNOTATION_PREFIX, INJECT } from '../pod/annotations.ts';
import type { Cluster } from '../pod/cluster.ts';
import { inject } from '../pod/inject.ts';
import type { InjectionDefaults } from '../pod/injection-defaults.ts';
import type { Namespace, Pod } from '../pod/pod.ts';
import type { Profiles } from '../pod/profiles.ts';
import { applyToDocument } from './apply-to-document.ts';
import { readManifestDocuments } from './manifest-documents.ts';
import { isObject, type Workload, workloadsIn } from './workload-kinds.ts';

interface InjectedManifests {
  /** Unchanged documents keep every character. */
  readonly text: string;
  /** What was done, one line each. */
  readonly notes: readonly string[];
  /** Whatever kept a workload from what it asks for; if any, `text` must not be used. */
  readonly problems: readonly string[];
}

export interface ManifestOptions {
  readonly defaults: InjectionDefaults;
  readonly cluster: Cluster;
  /** For workloads that name none. */
  readonly namespace: string;
  /** Profiles, found in all the documents together; absent if there are none. */
  readonly profilesIn?: (contents: readonly unknown[]) => Profiles;
}

/** YAML of one or more documents, or JSON. */
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
    injectDocument(document, contents[index], settled, labels, notes, problems),
  );
  if (problems.length > 0 || !changed.includes(true)) return { text, notes, problems };
  return { text: isJson(text) ? toJson(documents) : toYaml(text, documents, changed), notes, problems };
}

function injectDocument(
  document: Document,
  content: unknown,
  { defaults, cluster, namespace: fallback }: ManifestOptions,
  labels: ReadonlyMap<string, Namespace['labels']>,
  notes: string[],
  problems: string[],
): boolean {
  let changed = false;
  for (const workload of workloadsIn(content)) {
    const name = workload.namespace ?? fallback;
    const pod = podOf(content, workload);
    const unquoted = annotationsWithoutText(pod);
    if (unquoted.length > 0) {
      problems.push(`${workload.name}: ${unquoted.join(', ')}: expected text: put the value in quotes`);
      continue;
    }
    const known = labels.get(name);
    const injection = inject(
      pod,
      { name, ...(known === undefined ? {} : { labels: known }) },
      defaults,
      cluster,
    );
    if (injection.result === 'rejected') {
      problems.push(`${workload.name}: ${injection.message}`);
      continue;
    }
    for (const warning of injection.warnings) notes.push(`${workload.name}: warning: ${warning}`);
    if (injection.result === 'skipped') {
      notes.push(...misplaced(workload), `${workload.name}: skipped: ${injection.reason}`);
      continue;
    }
    const obstacle = applyToDocument(document, workload.podPath, injection.patch);
    if (obstacle === undefined) {
      changed = true;
      notes.push(`${workload.name}: injected: ${injection.reason}`);
    } else {
      problems.push(`${workload.name}: ${obstacle}`);
    }
  }
  return changed;
}

function misplaced({ name, ownAnnotations }: Workload): string[] {
  const own = Object.keys(ownAnnotations).filter((annotation) => annotation.startsWith(ANNOTATION_PREFIX));
  if (own.length === 0) return [];
  return [
    `${name}: warning: ${own.join(', ')} must stand on the pod template, not on the workload${own.includes(INJECT) ? '' : `; so must ${INJECT}`}`,
  ];
}

/** Our annotations that YAML reads as something else, such as `true` or `10`. The API server would refuse them too. */
function annotationsWithoutText({ metadata }: Pod): string[] {
  return Object.entries<unknown>(metadata?.annotations ?? {})
    .filter(([name, value]) => name.startsWith(ANNOTATION_PREFIX) && typeof value !== 'string')
    .map(([name]) => name);
}

function podOf(content: unknown, { podPath }: Workload): Pod {
  const pod = podPath.reduce<unknown>(
    (value, segment) => (isObject(value) || Array.isArray(value) ? value[segment as never] : undefined),
    content,
  );
  return isObject(pod) ? (pod as Pod) : {};
}

/** A namespace in the same manifests decides whether its pods may be injected. */
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

/** Unchanged documents keep their own text in place; changed ones get new text. */
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
    // Whether `- ` is indented further than the key above it; both are common.
    indentSeq: !/^( *)(?:- )?[^\s#-][^\n]*:[ \t]*\n(?: *#[^\n]*\n)*\1- /m.test(source),
    flowCollectionPadding: (padded ?? 0) >= (tight ?? 0),
  };
}
