/** The verdict on a pod and its JSON Patch, as pure functions. */

import type { InjectionDefaults } from '../injection-defaults.ts';
import { ANNOTATION, LABEL, MIRROR_POD, WRITTEN, type WrittenAnnotation } from './annotations.ts';
import { appContainersPatch } from './app-containers.ts';
import type { Cluster } from './cluster.ts';
import { captureObstacles, hostAliases, neededSysctl } from './hosts-mode.ts';
import { type AddOperation, add, addMembers, append, type JsonPatch } from './json-patch.ts';
import {
  CONTAINER,
  type Container,
  itemsOf,
  type Namespace,
  PORT,
  type Pod,
  type PodSpec,
  TOKENS,
  TRUST,
} from './pod.ts';
import { laterClashes, redirectContainer, redirectObstacles, redirectWarnings } from './redirect-mode.ts';
import { sidecarContainer, sidecarVolumes } from './sidecar-container.ts';
import { modeOf, resolveSettings, type SidecarSettings } from './sidecar-settings.ts';
import {
  refusal,
  reservedObstacles,
  takenPaths,
  tooManyContainers,
  validationErrorsIn,
  warningsFor,
} from './validation-errors.ts';

const INJECTED = 'injected';

const PROMETHEUS = {
  scrape: 'prometheus.io/scrape',
  port: 'prometheus.io/port',
  path: 'prometheus.io/path',
} as const;

export type Injection = InjectedPod | SkippedPod | RejectedPod;

interface InjectedPod {
  readonly result: 'injected';
  /** In a second pass: `later_containers` came after the first, and `restored` is what another webhook dropped. */
  readonly reason: 'native' | 'classic' | 'later_containers' | 'restored';
  readonly patch: JsonPatch;
  readonly warnings: readonly string[];
  /** Empty in a second pass, since the first has named them. */
  readonly secrets: readonly string[];
}

interface SkippedPod {
  readonly result: 'skipped';
  readonly reason: SkipReason;
  readonly warnings: readonly string[];
}

type SkipReason =
  | 'not_requested'
  | 'already_injected'
  | 'container_exists'
  | 'mirror_pod'
  | 'namespace_excluded';

interface RejectedPod {
  readonly result: 'rejected';
  readonly reason: 'invalid_annotations' | 'unsuitable_pod';
  readonly message: string;
}

/** A faulty injector must not be able to stop these pods. */
export const SYSTEM_NAMESPACES: readonly string[] = ['kube-system', 'kube-public', 'kube-node-lease'];

const DEFAULT_SERVICE_ACCOUNT = 'default';

/** The patched pod is `already_injected`: a second pass changes nothing. */
export function inject(
  pod: Pod,
  namespace: Namespace,
  defaults: InjectionDefaults,
  cluster: Cluster,
): Injection {
  const annotations = pod.metadata?.annotations ?? {};
  const asked = annotations[ANNOTATION.inject];
  if (asked === undefined || asked === 'false') return skipped('not_requested');
  if (SYSTEM_NAMESPACES.includes(namespace.name) || namespace.labels?.[LABEL.namespace] === 'disabled') {
    return skipped('namespace_excluded', `pods of the namespace ${namespace.name} get no sidecar`);
  }
  if (annotations[MIRROR_POD] !== undefined) return skipped('mirror_pod');
  if (annotations[ANNOTATION.status] === INJECTED) {
    if (hasSidecar(pod)) return secondPass(pod, defaults);
    return skipped(
      'already_injected',
      `${ANNOTATION.status} says that the sidecar is there, but there is no container of its name`,
    );
  }
  if (hasSidecar(pod)) {
    return skipped(
      'container_exists',
      `there is a container ${CONTAINER.sidecar} already; it is left as it is`,
    );
  }

  const { settings, problems, warnings } = resolveSettings(annotations, defaults, cluster, {
    namespace,
    serviceAccount: pod.spec?.serviceAccountName ?? DEFAULT_SERVICE_ACCOUNT,
  });
  const wrong = [
    ...(asked === 'true' ? [] : [{ key: ANNOTATION.inject, value: asked, expected: '"true" or "false"' }]),
    ...WRITTEN.flatMap((key) => {
      const value = annotations[key];
      return value === undefined ? [] : [{ key, value, expected: 'nothing: only the injector writes it' }];
    }),
    ...problems,
  ];
  const { captured, redirected, runAsUser } = settings;
  const validationErrors = [
    ...validationErrorsIn(pod, defaults.allowed ?? {}),
    ...reservedObstacles(pod.spec ?? {}, settings),
    ...(captured === undefined ? [] : captureObstacles(pod, captured)),
    ...(redirected === undefined ? [] : redirectObstacles({ pod, namespace, cluster, runAsUser })),
  ];
  if (wrong.length > 0 || validationErrors.length > 0) {
    return {
      result: 'rejected',
      reason: wrong.length > 0 ? 'invalid_annotations' : 'unsuitable_pod',
      message: refusal([...wrong, ...validationErrors]),
    };
  }
  return {
    result: 'injected',
    reason: settings.native ? 'native' : 'classic',
    patch: patchFor(pod, annotations, settings),
    warnings: [...warnings, ...redirectWarnings(pod.spec ?? {}, settings), ...warningsFor(pod, settings)],
    secrets: settings.secrets,
  };
}

export function hasSidecar({ spec = {} }: Pod): boolean {
  return [...itemsOf(spec.containers), ...itemsOf(spec.initContainers)].some(isSidecar);
}

function isSidecar({ name }: Container): boolean {
  return name === CONTAINER.sidecar;
}

function skipped(reason: SkipReason, ...warnings: readonly string[]): SkippedPod {
  return { result: 'skipped', reason, warnings };
}

/** Other webhooks may have added containers, or dropped parts of the sidecar, since the first pass. */
function secondPass({ metadata, spec = {} }: Pod, defaults: InjectionDefaults): Injection {
  // Anybody can claim that there was a first pass, which would have found these.
  const annotations = metadata?.annotations ?? {};
  const mode = modeOf(annotations, defaults);
  const has = (volume: string): boolean => itemsOf(spec.volumes).some(({ name }) => name === volume);
  const settings = { mode, intercepts: has(TRUST.volume), tokenFiles: has(TOKENS.volume) };
  const validationErrors = [
    ...tooManyContainers(spec),
    ...(mode === 'redirect' ? laterClashes(spec) : []),
    ...takenPaths(spec, settings),
  ];
  if (validationErrors.length > 0) {
    return { result: 'rejected', reason: 'unsuitable_pod', message: refusal(validationErrors) };
  }
  const patch = [
    ...appContainersPatch('containers', spec.containers, settings, (container) => !isSidecar(container)),
    // Containers before a native sidecar end before it begins.
    ...appContainersPatch(
      'initContainers',
      spec.initContainers,
      settings,
      ({ name }, before) => name !== CONTAINER.redirect && before.some(isSidecar),
    ),
  ];
  const dropped = droppedPolicy(spec);
  if (dropped !== undefined) {
    return {
      result: 'injected',
      reason: 'restored',
      patch: [...patch, dropped],
      warnings: [DROPPED],
      secrets: [],
    };
  }
  if (patch.length === 0) return skipped('already_injected');
  return { result: 'injected', reason: 'later_containers', patch, warnings: [], secrets: [] };
}

const DROPPED =
  `another webhook dropped restartPolicy: Always from the container ${CONTAINER.sidecar}, and it was put back: ` +
  'that webhook goes by API types of before Kubernetes 1.28 and wants an upgrade';

/**
 * A webhook with old API types drops fields that it does not know. Without this one the API server refuses the sidecar, and
 * complains only of probes.
 */
function droppedPolicy({ initContainers }: PodSpec): AddOperation | undefined {
  const dropped = (container: Container): boolean =>
    isSidecar(container) && typeof container.restartPolicy !== 'string';
  const index = itemsOf(initContainers).findIndex(dropped);
  return index === -1 ? undefined : add(`/spec/initContainers/${index}/restartPolicy`, 'Always');
}

function patchFor(
  pod: Pod,
  annotations: Readonly<Record<string, string>>,
  settings: SidecarSettings,
): JsonPatch {
  const { spec = {} } = pod;
  const container = sidecarContainer(settings, spec.terminationGracePeriodSeconds);
  const { redirected } = settings;
  // The sidecar comes first, to run when connections are redirected.
  const ours =
    redirected === undefined ? [container] : [container, redirectContainer({ ...settings, redirected })];
  const initContainers = spec.initContainers ?? undefined;
  return [
    ...appContainersPatch('containers', spec.containers, settings),
    // Before the insertion, which shifts them. A classic sidecar does not run yet.
    ...(settings.native ? appContainersPatch('initContainers', initContainers, settings) : []),
    ...(!settings.native
      ? append(spec.containers, ['spec', 'containers'], [container])
      : initContainers === undefined
        ? [add('/spec/initContainers', ours)]
        : // First, so that later init containers have tokens too.
          ours.map((one, index) => add(`/spec/initContainers/${index}`, one))),
    ...append(spec.volumes, ['spec', 'volumes'], sidecarVolumes(settings)),
    ...aliasesPatch(pod, settings),
    ...securityContextPatch(pod, settings),
    ...pullSecretsPatch(pod, settings),
    ...addMembers(annotations, ['metadata', 'annotations'], {
      [ANNOTATION.status]: INJECTED,
      ...profileAnnotations(settings),
      ...prometheusAnnotations(annotations, settings),
    }),
    ...(settings.profiles === undefined
      ? []
      : addMembers(pod.metadata?.labels, ['metadata', 'labels'], { [LABEL.profile]: 'true' })),
  ];
}

function aliasesPatch({ spec = {} }: Pod, { captured }: SidecarSettings): AddOperation[] {
  if (captured === undefined) return [];
  return append(spec.hostAliases, ['spec', 'hostAliases'], hostAliases(captured));
}

function securityContextPatch({ spec = {} }: Pod, settings: SidecarSettings): AddOperation[] {
  const existing = spec.securityContext;
  const path = ['spec', 'securityContext'];
  const { captured } = settings;
  const sysctl = captured === undefined ? undefined : neededSysctl(existing, captured);
  const sysctls = sysctl === undefined ? [] : [sysctl];
  const own = existing?.sysctls ?? undefined;
  const members = {
    ...group(existing, settings),
    ...(own === undefined && sysctls.length > 0 ? { sysctls } : {}),
  };
  return [
    ...(Object.keys(members).length === 0 ? [] : addMembers(existing, path, members)),
    ...(own === undefined ? [] : append(own, [...path, 'sysctls'], sysctls)),
  ];
}

/** The sidecar reads the Secret's files through the pod's group. */
function group(existing: PodSpec['securityContext'], { runAsUser }: SidecarSettings): object {
  if (runAsUser === 'none' || typeof existing?.fsGroup === 'number') return {};
  const policy =
    typeof existing?.fsGroupChangePolicy === 'string' ? {} : { fsGroupChangePolicy: 'OnRootMismatch' };
  return { fsGroup: runAsUser, ...policy };
}

/** If the pod named none, the API server has already added the account's own. */
function pullSecretsPatch({ spec = {} }: Pod, { imagePullSecrets }: SidecarSettings): AddOperation[] {
  const existing = new Set(spec.imagePullSecrets?.map(({ name }) => name));
  const missing = imagePullSecrets.filter((name) => !existing.has(name)).map((name) => ({ name }));
  return append(spec.imagePullSecrets, ['spec', 'imagePullSecrets'], missing);
}

/** Also writes the mode, for a second pass. */
function profileAnnotations({
  profiles,
  brokerAuthorities,
  mode,
}: SidecarSettings): Readonly<Partial<Record<WrittenAnnotation | typeof ANNOTATION.mode, string>>> {
  if (profiles === undefined) return {};
  return {
    [ANNOTATION.mode]: mode,
    [ANNOTATION.configuration]: profiles.configuration,
    [ANNOTATION.profilesInUse]: profiles.inUse,
    ...(brokerAuthorities === undefined ? {} : { [ANNOTATION.brokerCa]: brokerAuthorities }),
  };
}

/** Only one port can be scraped. */
function prometheusAnnotations(
  annotations: Readonly<Record<string, string>>,
  { prometheusAnnotations }: SidecarSettings,
): Readonly<Record<string, string>> {
  const marked = Object.values(PROMETHEUS).some((name) => annotations[name] !== undefined);
  if (!prometheusAnnotations || marked) return {};
  return {
    [PROMETHEUS.scrape]: 'true',
    [PROMETHEUS.port]: String(PORT.admin),
    [PROMETHEUS.path]: '/metrics',
  };
}
