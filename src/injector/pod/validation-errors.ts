/** What in a pod prevents injection, apart from annotations. */

import { describeProblem, type Problem } from '../../platform/problems.ts';
import { type AllowLists, limitsAnything } from './allow-lists.ts';
import {
  type AppSettings,
  appEnvironment,
  JAVA_OPTIONS,
  namesTrustStore,
  sidecarMounts,
} from './app-containers.ts';
import {
  ADMIN_PORT_NAME,
  CONTAINER,
  type Container,
  containersOf,
  itemsOf,
  PORT,
  type Pod,
  type PodSpec,
  takenPort,
  takenPorts,
} from './pod.ts';
import { isCredentialsVolume, isSidecarVolume } from './sidecar-mounts.ts';
import type { SidecarSettings } from './sidecar-settings.ts';

/** Each costs memory in the patch. */
const MAX_CONTAINERS = 200;

/** Further ones are only counted. */
const MAX_PROBLEMS_TOLD = 50;

/** The API server's limit for all warnings, in characters. */
const MAX_WARNING = 4096;

/** Of a value, in characters. */
const MAX_TOLD = 200;

export function validationErrorsIn({ spec = {} }: Pod, allowed: AllowLists): readonly Problem[] {
  return [
    ...noContainers(spec),
    ...tooManyContainers(spec),
    ...hostNetwork(spec),
    ...(limitsAnything(allowed) ? sharedProcesses(spec) : []),
    ...windows(spec),
    ...takenVolumeNames(spec),
    ...takenMounts(spec),
    ...takenPorts(spec, (port) =>
      port === PORT.proxy || port === PORT.admin
        ? `a port other than the sidecar's, ${PORT.proxy} and ${PORT.admin}`
        : undefined,
    ),
    ...takenPortNames(spec),
  ];
}

function noContainers({ containers }: PodSpec): Problem[] {
  if (itemsOf(containers).length > 0) return [];
  return [{ key: 'spec.containers', expected: 'at least one container' }];
}

export function tooManyContainers({ containers, initContainers }: PodSpec): Problem[] {
  const count = itemsOf(containers).length + itemsOf(initContainers).length;
  if (count <= MAX_CONTAINERS) return [];
  return [{ key: 'spec.containers', value: String(count), expected: `at most ${MAX_CONTAINERS} of them` }];
}

/** Any pod of the node could use this pod's token, and two sidecars could not listen. */
function hostNetwork({ hostNetwork }: PodSpec): Problem[] {
  if (hostNetwork !== true) return [];
  return [
    {
      key: 'spec.hostNetwork',
      value: 'true',
      expected: "false: on the node's loopback every process there could use the pod's token",
    },
  ];
}

/** A container with the sidecar's user could read the sidecar's files through /proc/PID/root. */
function sharedProcesses(spec: PodSpec): Problem[] {
  return (['shareProcessNamespace', 'hostPID'] as const)
    .filter((field) => spec[field] === true)
    .map((field) => ({
      key: `spec.${field}`,
      value: 'true',
      expected: "false, where the operator limits annotations: the app could read the sidecar's credentials",
    }));
}

function windows({ os, nodeSelector }: PodSpec): Problem[] {
  const key = os?.name === 'windows' ? 'spec.os.name' : 'spec.nodeSelector["kubernetes.io/os"]';
  if (os?.name !== 'windows' && nodeSelector?.['kubernetes.io/os'] !== 'windows') return [];
  return [{ key, value: 'windows', expected: 'linux: there is no image of the sidecar for Windows' }];
}

function takenVolumeNames({ volumes }: PodSpec): Problem[] {
  return itemsOf(volumes).flatMap(({ name }, index) =>
    isSidecarVolume(name)
      ? [
          {
            key: `spec.volumes[${index}].name`,
            value: name,
            expected: "a name that is not one of the sidecar's",
          },
        ]
      : [],
  );
}

/** Mounted by an app, the volume would show it the client secret. */
function takenMounts(spec: PodSpec): Problem[] {
  return containersOf(spec).flatMap(({ path, container: { volumeMounts } }) =>
    itemsOf(volumeMounts).flatMap(({ name }, index) =>
      isCredentialsVolume(name)
        ? [
            {
              key: `${path}.volumeMounts[${index}].name`,
              value: name,
              expected: "a volume of the pod's own: this one is for the sidecar alone",
            },
          ]
        : [],
    ),
  );
}

function takenPortNames(spec: PodSpec): Problem[] {
  return containersOf(spec).flatMap(({ path, container: { ports } }) =>
    itemsOf(ports).flatMap(({ name }, index) =>
      name === ADMIN_PORT_NAME
        ? [
            {
              key: `${path}.ports[${index}].name`,
              value: name,
              expected: "a name other than that of the sidecar's port",
            },
          ]
        : [],
    ),
  );
}

export function warningsFor(pod: Pod, settings: SidecarSettings): readonly string[] {
  const { spec = {} } = pod;
  const warnings: string[] = [];
  if (spec.shareProcessNamespace === true) {
    warnings.push(
      "spec.shareProcessNamespace: processes of the same user or of root in other containers can read the sidecar's credentials",
    );
  }
  const claims = itemsOf(spec.volumes).filter(({ persistentVolumeClaim }) => persistentVolumeClaim != null);
  if (typeof spec.securityContext?.fsGroup !== 'number' && claims.length > 0) {
    const names = claims.map(({ name }) => name).join(', ');
    warnings.push(
      `spec.securityContext.fsGroup was not set and is now the sidecar's: it applies to the volumes ${names} too`,
    );
  }
  if (!settings.native && spec.restartPolicy !== undefined && spec.restartPolicy !== 'Always') {
    warnings.push(
      'the pod does not end by itself with a sidecar that is not native: let the app POST http://127.0.0.1:15081/quitquitquit when it is done',
    );
  }
  const proxied = new Set(appEnvironment(settings).map(({ name }) => name));
  for (const container of itemsOf(spec.containers)) {
    const { name, env } = container;
    const own = itemsOf(env)
      .filter((variable) => proxied.has(variable.name))
      .map((variable) => variable.name);
    if (own.length > 0) {
      warnings.push(
        `container ${name} sets ${own.join(', ')} itself and keeps it: it may not use the sidecar`,
      );
    }
    if (settings.intercepts) warnings.push(...interceptionWarnings(container));
  }
  return warnings.slice(0, MAX_PROBLEMS_TOLD).map((warning) => warning.slice(0, MAX_WARNING));
}

function interceptionWarnings({ name, env, envFrom }: Container): readonly string[] {
  const warnings: string[] = [];
  const java = itemsOf(env).find((variable) => variable.name === JAVA_OPTIONS);
  const keepsJava = java !== undefined && (java.value === undefined || namesTrustStore(java.value));
  if (keepsJava) {
    const how = java.value === undefined ? 'takes it from elsewhere' : 'names a trust store';
    warnings.push(
      `container ${name} ${how} in ${JAVA_OPTIONS} and keeps it: a JVM in it will not trust the sidecar`,
    );
  }
  if (itemsOf(envFrom).length > 0) {
    warnings.push(
      `container ${name} has envFrom: variables from it that are named like those of the proxy and of trust have no effect`,
    );
  }
  return warnings;
}

/** The volume is not optional, so the kubelet waits. */
export function secretMissing(name: string, namespace: string): string {
  return `the Secret ${name} does not exist in ${namespace}: the pod will wait for it`;
}

export function refusal(problems: readonly Problem[]): string {
  const all = problems
    .slice(0, MAX_PROBLEMS_TOLD)
    .map(({ value, ...problem }) =>
      describeProblem(value === undefined ? problem : { ...problem, value: value.slice(0, MAX_TOLD) }),
    );
  if (problems.length > MAX_PROBLEMS_TOLD) all.push(`and ${problems.length - MAX_PROBLEMS_TOLD} more`);
  return `token-sidecar: the pod asks for the sidecar and cannot have it: ${all.join('; ')}`;
}

/** Only in a first pass. */
export function reservedObstacles(spec: PodSpec, settings: SidecarSettings): readonly Problem[] {
  return [
    ...(settings.tokenEndpoint ? takenPort(spec, PORT.tokenEndpoint, 'where the sidecar gives tokens') : []),
    ...(settings.redirected === undefined ? [] : takenNames(spec)),
    ...takenPaths(spec, settings),
  ];
}

/** The API server's message does not say whose the second mount is. */
export function takenPaths(spec: PodSpec, settings: AppSettings): readonly Problem[] {
  const ours = sidecarMounts(settings);
  return containersOf(spec).flatMap(({ path, container: { volumeMounts } }) =>
    itemsOf(volumeMounts).flatMap(({ name, mountPath }, index) => {
      const taken = ours.find((mount) => mount.mountPath === withoutSlash(mountPath));
      if (taken === undefined || taken.name === name) return [];
      const expected = `another path: what the sidecar leaves for the app is mounted there, from ${taken.name}`;
      return [{ key: `${path}.volumeMounts[${index}].mountPath`, value: taken.mountPath, expected }];
    }),
  );
}

/** The API server has not validated the pod yet. */
function withoutSlash(path: unknown): string | undefined {
  return typeof path === 'string' ? path.replace(/\/$/, '') : undefined;
}

function takenNames(spec: PodSpec): readonly Problem[] {
  return containersOf(spec).flatMap(({ path, container: { name } }) =>
    name === CONTAINER.redirect
      ? [{ key: `${path}.name`, value: name, expected: 'another name: the container that redirects has it' }]
      : [],
  );
}
