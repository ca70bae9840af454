/** Where an object of any kind has its pod templates: by structure, so that kinds of other operators are served too. */

import { ANNOTATION } from '../pod/annotations.ts';
import type { Pod } from '../pod/pod.ts';

type Path = readonly (string | number)[];

export interface ManifestObject {
  /** `Deployment shop`. */
  readonly name: string;
  readonly namespace: string | undefined;
  /** The sidecar's annotations have no effect here. Empty for a Pod. */
  readonly ownAnnotations: Readonly<Record<string, unknown>>;
  readonly templates: readonly PodTemplate[];
  /** Where the sidecar is asked for outside of a template, such as `spec.podMetadata.annotations`. */
  readonly asksAt: readonly string[];
  /** Why the API would refuse the object with a sidecar. */
  readonly refusal: string | undefined;
}

export interface PodTemplate {
  readonly name: string;
  readonly path: Path;
  readonly pod: Pod;
}

/** By API group. Their admission webhooks refuse what the patch adds. */
const REFUSALS: Readonly<Record<string, string>> = {
  'serving.knative.dev': 'Knative takes no init containers and no second container with a port',
};

export function objectsIn(manifest: unknown, path: Path = []): readonly ManifestObject[] {
  if (!isObject(manifest)) return [];
  const { kind, apiVersion, metadata, items } = manifest;
  if (typeof kind !== 'string' || kind === '' || typeof apiVersion !== 'string') return [];
  if (kind.endsWith('List') && Array.isArray(items)) {
    return items.flatMap((item: unknown, index) => {
      // Items of a typed list may omit their kind.
      const named = isObject(item) ? { apiVersion, kind: kind.slice(0, -'List'.length), ...item } : item;
      return objectsIn(named, [...path, 'items', index]);
    });
  }
  const isPod = apiVersion === 'v1' && kind === 'Pod';
  const found: Found = { templates: isPod ? [{ path: [], pod: manifest as Pod }] : [], asksAt: [] };
  // A PodTemplate has no spec.
  if (!isPod) for (const part of ['spec', 'template']) search(manifest[part], [part], found);
  const own = isObject(metadata) ? metadata : {};
  const name = `${kind} ${String(own['name'] ?? own['generateName'] ?? '')}`.trim();
  return [
    {
      name,
      namespace: typeof own['namespace'] === 'string' ? own['namespace'] : undefined,
      ownAnnotations: !isPod && isObject(own['annotations']) ? own['annotations'] : {},
      templates: found.templates.map((template) => ({
        name: found.templates.length === 1 ? name : `${name} (${template.path.join('.')})`,
        path: [...path, ...template.path],
        pod: template.pod,
      })),
      asksAt: found.asksAt,
      refusal: REFUSALS[apiVersion.split('/')[0] as string],
    },
  ];
}

interface Found {
  readonly templates: Omit<PodTemplate, 'name'>[];
  readonly asksAt: string[];
}

/** Objects within the object, as a template of another controller holds them, are not this object's pods. */
function search(value: unknown, path: Path, found: Found, within: readonly unknown[] = []): void {
  // An alias may hold itself.
  if (within.includes(value)) return;
  if (Array.isArray(value)) {
    value.forEach((item, index) => {
      search(item, [...path, index], found, [...within, value]);
    });
  }
  if (!isObject(value) || (typeof value['apiVersion'] === 'string' && typeof value['kind'] === 'string'))
    return;
  if (isPodTemplate(value)) {
    found.templates.push({ path, pod: value as Pod });
    return;
  }
  if (asks(value)) found.asksAt.push(path.join('.'));
  for (const [key, inner] of Object.entries(value)) {
    search(inner, [...path, key], found, [...within, value]);
  }
}

function isPodTemplate({ spec }: Record<string, unknown>): boolean {
  const containers = isObject(spec) ? spec['containers'] : undefined;
  return Array.isArray(containers) && containers.length > 0 && containers.every(isObject);
}

export function asks(annotations: Readonly<Record<string, unknown>>): boolean {
  return ![undefined, false, 'false'].includes(annotations[ANNOTATION.inject] as never);
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
