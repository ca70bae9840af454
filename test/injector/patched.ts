import { applyPatch } from 'rfc6902';
import { expect } from 'vitest';
import type { JsonPatch } from '../../src/injector/pod/json-patch.ts';
import type { Pod } from '../../src/injector/pod/pod.ts';

/** What tests look at in a patched pod. */
export interface PatchedPod {
  readonly metadata: { readonly annotations: Readonly<Record<string, string>> };
  readonly spec: {
    readonly containers: readonly PatchedContainer[];
    readonly initContainers: readonly PatchedContainer[];
    readonly volumes: readonly { readonly name: string }[];
    readonly securityContext: Readonly<Record<string, unknown>>;
  };
}

export interface PatchedContainer {
  readonly name: string;
  readonly env?: readonly { readonly name: string; readonly value: string }[];
  readonly volumeMounts?: readonly { readonly name: string; readonly readOnly?: boolean }[];
  readonly resources: unknown;
  readonly restartPolicy?: string;
  readonly lifecycle?: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } };
}

/** The pod as the API server would have it after the patch (RFC 6902, by a library). */
export function patched(pod: Pod, patch: JsonPatch): PatchedPod {
  const copy = structuredClone(pod);
  const failures = applyPatch(copy, structuredClone(patch) as never).filter((failure) => failure !== null);
  expect(failures).toEqual([]);
  return copy as PatchedPod;
}
