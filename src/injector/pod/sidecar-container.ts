/** charts/token-sidecar/templates/_sidecar.tpl does this for charts. */

import { ADMIN_PORT_NAME, CONTAINER, PORT } from './pod.ts';
import type { SidecarSettings } from './sidecar-settings.ts';

/** The kubelet mounts it even if the rest is read-only. */
const TERMINATION_LOG = '/dev/termination-log';

const DEFAULT_GRACE_SECONDS = 30;

/** A classic sidecar serves on while the app finishes its requests. */
const LINGER_SECONDS = 5;

/** @param graceSeconds the pod's `terminationGracePeriodSeconds`. */
export function sidecarContainer(settings: SidecarSettings, graceSeconds?: number | null): object {
  return {
    name: CONTAINER.sidecar,
    image: settings.image,
    imagePullPolicy: settings.imagePullPolicy,
    args: ['proxy'],
    ...(settings.native ? { restartPolicy: 'Always' } : {}),
    env: settings.environment,
    ports: [{ name: ADMIN_PORT_NAME, containerPort: PORT.admin, protocol: 'TCP' }],
    // Holds back the app until there is a token. An earlier probe would report a healthy pod as failing.
    startupProbe: {
      ...probe('/startupz'),
      initialDelaySeconds: 1,
      periodSeconds: 1,
      failureThreshold: settings.startupSeconds,
    },
    readinessProbe: { ...probe('/readyz'), periodSeconds: 5, failureThreshold: 2 },
    livenessProbe: { ...probe('/livez'), periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 },
    ...(settings.native ? {} : linger(graceSeconds ?? DEFAULT_GRACE_SECONDS)),
    resources: resourcesOf(settings),
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
    volumeMounts: settings.mounts.map(({ name, mountPath, readOnly }) => ({
      name,
      mountPath,
      ...(readOnly ? { readOnly } : {}),
    })),
  };
}

export function sidecarVolumes({ mounts }: SidecarSettings): readonly object[] {
  return mounts.map(({ name, volume }) => ({ name, ...volume }));
}

function userAndGroup({ runAsUser }: SidecarSettings): object {
  return runAsUser === 'none' ? {} : { runAsUser, runAsGroup: runAsUser };
}

function probe(path: string): object {
  return { httpGet: { path, port: ADMIN_PORT_NAME } };
}

/** The image has no `sleep`. Most of the grace period is for the drain. */
function linger(graceSeconds: number): object {
  const seconds = Math.min(LINGER_SECONDS, Math.floor(graceSeconds / 6));
  if (seconds === 0) return {};
  const command = ['node', '-e', `setTimeout(() => {}, ${seconds * 1000})`];
  return { lifecycle: { preStop: { exec: { command } } } };
}

export function resourcesOf({ resources: given }: SidecarSettings): object {
  const requests = quantities(given.cpuRequest, given.memoryRequest);
  const limits = quantities(given.cpuLimit, given.memoryLimit);
  return { ...(requests === undefined ? {} : { requests }), ...(limits === undefined ? {} : { limits }) };
}

function quantities(cpu: string | undefined, memory: string | undefined): object | undefined {
  if (cpu === undefined && memory === undefined) return undefined;
  return { ...(cpu === undefined ? {} : { cpu }), ...(memory === undefined ? {} : { memory }) };
}
