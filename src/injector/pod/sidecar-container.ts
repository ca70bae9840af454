/** The sidecar as a container and its volumes: what charts/token-sidecar/templates/_sidecar.tpl writes for charts. */

import {
  ADMIN_PORT,
  ADMIN_PORT_NAME,
  CA_DIRECTORY,
  CA_KEY,
  CA_VOLUME,
  CONFIG_DIRECTORY,
  CONFIG_KEY,
  CONFIG_VOLUME,
  CONTAINER_NAME,
  CREDENTIALS_PATH,
  CREDENTIALS_VOLUME,
  TERMINATION_LOG,
  TRUST_DIRECTORY,
  TRUST_VOLUME,
} from './names.ts';
import type { EnvironmentVariable } from './pod.ts';
import type { SidecarSettings } from './sidecar-settings.ts';

/** 0440: readable by root and by the pod's fsGroup. */
const CREDENTIALS_MODE = 0o440;

/** Three files of a few hundred kilobytes, and one more of each while they are replaced. */
const TRUST_SIZE = '8Mi';

/** Kubernetes' own default, for pods that do not say. */
const DEFAULT_GRACE_SECONDS = 30;

/** How long a classic sidecar goes on serving while the app, told at the same moment, finishes its requests. */
const LINGER_SECONDS = 5;

/** @param graceSeconds the pod's `terminationGracePeriodSeconds`. */
export function sidecarContainer(settings: SidecarSettings, graceSeconds?: number | null): object {
  return {
    name: CONTAINER_NAME,
    image: settings.image,
    imagePullPolicy: settings.imagePullPolicy,
    args: ['proxy'],
    ...(settings.native ? { restartPolicy: 'Always' } : {}),
    env: sidecarEnvironment(settings),
    ports: [{ name: ADMIN_PORT_NAME, containerPort: ADMIN_PORT, protocol: 'TCP' }],
    // On a native sidecar it holds back the app's containers until the first token is there.
    // The first second belongs to Node and the first grant: asked then, a healthy pod would be reported as failing.
    startupProbe: {
      ...probe('/startupz'),
      initialDelaySeconds: 1,
      periodSeconds: 1,
      failureThreshold: settings.startupSeconds,
    },
    readinessProbe: { ...probe('/readyz'), periodSeconds: 5, failureThreshold: 2 },
    livenessProbe: { ...probe('/livez'), periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 },
    // The kubelet stops a native sidecar after the app by itself.
    ...(settings.native ? {} : linger(graceSeconds ?? DEFAULT_GRACE_SECONDS)),
    resources: resources(settings),
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      ...userAndGroup(settings),
      capabilities: { drop: ['ALL'] },
      seccompProfile: { type: 'RuntimeDefault' },
    },
    terminationMessagePath: TERMINATION_LOG,
    terminationMessagePolicy: 'FallbackToLogsOnError',
    volumeMounts: [
      { name: CREDENTIALS_VOLUME, mountPath: CREDENTIALS_PATH, readOnly: true },
      ...(settings.configMap === undefined
        ? []
        : [{ name: CONFIG_VOLUME, mountPath: CONFIG_DIRECTORY, readOnly: true }]),
      ...(settings.caConfigMap === undefined
        ? []
        : [{ name: CA_VOLUME, mountPath: CA_DIRECTORY, readOnly: true }]),
      ...(settings.hosts === undefined ? [] : [{ name: TRUST_VOLUME, mountPath: TRUST_DIRECTORY }]),
    ],
  };
}

function userAndGroup({ runAsUser }: SidecarSettings): object {
  return runAsUser === 'none' ? {} : { runAsUser, runAsGroup: runAsUser };
}

export function sidecarVolumes(settings: SidecarSettings): readonly object[] {
  const { secret, configMap, caConfigMap, hosts } = settings;
  const credentials = {
    name: CREDENTIALS_VOLUME,
    projected: {
      defaultMode: CREDENTIALS_MODE,
      sources: [{ secret: { name: secret, optional: false } }],
    },
  };
  const trust = { name: TRUST_VOLUME, emptyDir: { medium: 'Memory', sizeLimit: TRUST_SIZE } };
  const mapped = (name: string, from: string | undefined, items: object): object[] =>
    from === undefined ? [] : [{ name, configMap: { name: from, optional: false, ...items } }];
  return [
    credentials,
    ...mapped(CONFIG_VOLUME, configMap, {}),
    ...mapped(CA_VOLUME, caConfigMap, { items: [{ key: CA_KEY, path: CA_KEY }] }),
    ...(hosts === undefined ? [] : [trust]),
  ];
}

function sidecarEnvironment(settings: SidecarSettings): readonly EnvironmentVariable[] {
  const values: Readonly<Record<string, string | undefined>> = {
    CONFIG: settings.configMap === undefined ? undefined : `${CONFIG_DIRECTORY}/${CONFIG_KEY}`,
    AUTH_URL: settings.authUrl,
    REALM: settings.realm,
    ALLOW_INSECURE_TOKEN_URL: settings.allowInsecureTokenUrl ? 'true' : undefined,
    UPSTREAM: settings.upstream,
    PROTOCOL: settings.protocol,
    HOSTS: settings.hosts,
    TRUST_DIR: settings.hosts === undefined ? undefined : TRUST_DIRECTORY,
    SCOPE: settings.scope,
    AUDIENCE: settings.audience,
    LOG_LEVEL: settings.logLevel,
  };
  const own = Object.entries(values).flatMap(([name, value]) =>
    value === undefined ? [] : [{ name: `TOKEN_SIDECAR_${name}`, value: withoutExpansion(value) }],
  );
  // Node reads it at its start, and trusts what is in it beside the public CAs.
  const authorities = { name: 'NODE_EXTRA_CA_CERTS', value: `${CA_DIRECTORY}/${CA_KEY}` };
  return settings.caConfigMap === undefined ? own : [...own, authorities];
}

/**
 * The kubelet replaces `$(NAME)` in a value, and every `$$` by one dollar sign. So every one is doubled: of `$$(NAME)`
 * with one sign more it would make `$` and the variable.
 */
function withoutExpansion(value: string): string {
  return value.replaceAll('$', '$$$$');
}

function probe(path: string): object {
  return { httpGet: { path, port: ADMIN_PORT_NAME } };
}

/** By Node, as the image has no `sleep`; never so long that too little of the grace period is left to drain. */
function linger(graceSeconds: number): object {
  const seconds = Math.min(LINGER_SECONDS, Math.floor(graceSeconds / 6));
  if (seconds === 0) return {};
  const command = ['node', '-e', `setTimeout(() => {}, ${seconds * 1000})`];
  return { lifecycle: { preStop: { exec: { command } } } };
}

function resources({ resources: given }: SidecarSettings): object {
  const requests = quantities(given.cpuRequest, given.memoryRequest);
  const limits = quantities(given.cpuLimit, given.memoryLimit);
  return { ...(requests === undefined ? {} : { requests }), ...(limits === undefined ? {} : { limits }) };
}

function quantities(cpu: string | undefined, memory: string | undefined): object | undefined {
  if (cpu === undefined && memory === undefined) return undefined;
  return { ...(cpu === undefined ? {} : { cpu }), ...(memory === undefined ? {} : { memory }) };
}
