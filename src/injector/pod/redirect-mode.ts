/** An init container with NET_ADMIN sends the app's connections to the sidecar. */

import { formats } from '../../config/values.ts';
import type { Problem } from '../../platform/problems.ts';
import { ANNOTATION } from './annotations.ts';
import type { Cluster } from './cluster.ts';
import {
  CONTAINER,
  type Container,
  containersOf,
  itemsOf,
  type Namespace,
  PORT,
  type Pod,
  type PodSpec,
  takenPort,
  USER,
} from './pod.ts';
import { resourcesOf } from './sidecar-container.ts';
import { WITH_FOREIGN_FUNCTIONS } from './sidecar-environment.ts';
import type { SidecarSettings } from './sidecar-settings.ts';

/** Hosts of the annotation may name others. */
const USUAL_PORTS = [80, 443];

/** Enforced by Pod Security admission (kubernetes.io/docs/concepts/security/pod-security-admission). */
const ENFORCED_STANDARD = 'pod-security.kubernetes.io/enforce';

/** They forbid NET_ADMIN. */
const FORBIDDING = ['baseline', 'restricted'];

/** Service meshes redirect connections, too. */
const MESHES: Readonly<Record<string, string>> = {
  'istio-init': 'Istio',
  'istio-validation': 'Istio',
  'istio-proxy': 'Istio',
  'linkerd-init': 'Linkerd',
  'linkerd-network-validator': 'Linkerd',
  'linkerd-proxy': 'Linkerd',
};

/** In the form of `--ports`. */
export function capturedPorts(hosts: string): string {
  const named = (formats.namedHosts.parse(hosts) ?? []).flatMap(({ port }) =>
    port === undefined ? [] : [port],
  );
  return [...new Set([...USUAL_PORTS, ...named])].join(',');
}

export function redirectContainer(settings: SidecarSettings & { readonly redirected: string }): object {
  const { redirectImage: image, imagePullPolicy, runAsUser, redirected } = settings;
  return {
    name: CONTAINER.redirect,
    image,
    imagePullPolicy,
    args: ['redirect', '--ports', capturedPorts(redirected), '--exempt-user', String(runAsUser)],
    env: [WITH_FOREIGN_FUNCTIONS],
    resources: resourcesOf(settings),
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: false,
      runAsUser: 0,
      runAsGroup: 0,
      capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] },
      seccompProfile: { type: 'RuntimeDefault' },
    },
    terminationMessagePolicy: 'FallbackToLogsOnError',
  };
}

interface RedirectedPod {
  readonly pod: Pod;
  readonly namespace: Namespace;
  readonly cluster: Cluster;
  readonly runAsUser: SidecarSettings['runAsUser'];
}

export function redirectObstacles({ pod, namespace, cluster, runAsUser }: RedirectedPod): readonly Problem[] {
  const { spec = {} } = pod;
  return [...forbiddenByNamespace(namespace, cluster), ...clashes(spec, runAsUser)];
}

/** Pod Security's own message would not explain the container. */
function forbiddenByNamespace({ name, labels }: Namespace, { namespaceLabels }: Cluster): Problem[] {
  const known = labels ?? namespaceLabels?.(name);
  const standard = FORBIDDING.find((one) => known?.[ENFORCED_STANDARD] === one);
  if (standard === undefined) return [];
  const expected = `hosts or forward: redirect needs an init container with NET_ADMIN, and the namespace ${name} enforces the Pod Security Standard ${standard} (label ${ENFORCED_STANDARD}), which forbids it`;
  return [{ key: ANNOTATION.mode, value: 'redirect', expected }];
}

/** Other webhooks may run later. */
function clashes(spec: PodSpec, runAsUser: SidecarSettings['runAsUser']): readonly Problem[] {
  return [
    ...meshObstacles(spec),
    ...sharedUsers(spec, runAsUser),
    ...takenPort(spec, PORT.redirect, 'to which connections are redirected'),
  ];
}

export function laterClashes(spec: PodSpec): readonly Problem[] {
  const sidecar = itemsOf(spec.initContainers).find(({ name }) => name === CONTAINER.sidecar);
  const user = sidecar && userOf(sidecar);
  return user === undefined ? meshObstacles(spec) : clashes(spec, user);
}

function meshObstacles(spec: PodSpec): readonly Problem[] {
  return containersOf(spec).flatMap(({ path, container: { name } }) => {
    const mesh = Object.hasOwn(MESHES, name) ? MESHES[name] : undefined;
    if (mesh === undefined) return [];
    const expected = `no container of ${mesh}, because ${ANNOTATION.mode} is redirect: both would take the same connections; the modes hosts and forward go with it`;
    return [{ key: `${path}.name`, value: name, expected }];
  });
}

/** An app with the sidecar's user would bypass the sidecar. */
function sharedUsers(spec: PodSpec, runAsUser: SidecarSettings['runAsUser']): Problem[] {
  if (runAsUser === 'none') {
    const expected =
      'another, where the platform assigns users: the connections of the sidecar are told by its user';
    return [{ key: ANNOTATION.mode, value: 'redirect', expected }];
  }
  const expected = `another user than the sidecar's, because ${ANNOTATION.mode} is redirect: its connections would pass for those of the sidecar`;
  const ofPod = spec.securityContext?.runAsUser;
  const apps = appContainers(spec);
  const own = apps.filter(({ container }) => userOf(container) === runAsUser);
  const inheriting = ofPod === runAsUser && apps.some(({ container }) => userOf(container) === undefined);
  return [
    ...(inheriting ? [{ key: 'spec.securityContext.runAsUser', value: String(ofPod), expected }] : []),
    ...own.map(({ path }) => ({
      key: `${path}.securityContext.runAsUser`,
      value: String(runAsUser),
      expected,
    })),
  ];
}

/** An image may have the sidecar's user, which the pod does not show. */
export function redirectWarnings(
  spec: PodSpec,
  { runAsUser, redirected }: SidecarSettings,
): readonly string[] {
  const isOfPod = typeof spec.securityContext?.runAsUser === 'number';
  if (redirected === undefined || runAsUser === USER.redirect || isOfPod) return [];
  return appContainers(spec)
    .filter(({ container }) => userOf(container) === undefined)
    .map(
      ({ container: { name } }) =>
        `container ${name} has no runAsUser: if its image has the user ${runAsUser}, the sidecar's, its connections are not redirected`,
    );
}

function appContainers(spec: PodSpec): ReturnType<typeof containersOf> {
  return containersOf(spec).filter(
    ({ container: { name } }) => name !== CONTAINER.sidecar && name !== CONTAINER.redirect,
  );
}

function userOf({ securityContext }: Container): number | undefined {
  return securityContext?.runAsUser ?? undefined;
}
