/** What about a pod, apart from its annotations, keeps the sidecar out of it or deserves a word. */

import { describeProblem, type Problem } from '../../config/problems.ts';
import { ADMIN_PORT, ADMIN_PORT_NAME, CONFIG_VOLUME, CREDENTIALS_VOLUME, PROXY_PORT } from './names.ts';
import type { Container, Pod, PodSpec } from './pod.ts';
import { appEnvironment } from './sidecar-container.ts';
import type { SidecarSettings } from './sidecar-settings.ts';

/** Each of them is a reason to refuse a pod that asks for the sidecar. */
export function obstaclesIn({ spec = {} }: Pod): readonly Problem[] {
  return [
    ...noContainers(spec),
    ...hostNetwork(spec),
    ...windows(spec),
    ...takenVolumeNames(spec),
    ...takenPorts('spec.containers', spec.containers),
    ...takenPorts('spec.initContainers', spec.initContainers),
  ];
}

function noContainers({ containers }: PodSpec): Problem[] {
  const none = containers === undefined || containers === null || containers.length === 0;
  return none ? [{ key: 'spec.containers', expected: 'at least one container' }] : [];
}

/** The loopback of the node is everybody's: any pod there could use this pod's token, and two could not listen. */
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

function windows({ os, nodeSelector }: PodSpec): Problem[] {
  const key = os?.name === 'windows' ? 'spec.os.name' : 'spec.nodeSelector["kubernetes.io/os"]';
  if (os?.name !== 'windows' && nodeSelector?.['kubernetes.io/os'] !== 'windows') return [];
  return [{ key, value: 'windows', expected: 'linux: there is no image of the sidecar for Windows' }];
}

function takenVolumeNames({ volumes }: PodSpec): Problem[] {
  return (volumes ?? []).flatMap(({ name }, index) =>
    name === CREDENTIALS_VOLUME || name === CONFIG_VOLUME
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

function takenPorts(path: string, containers: readonly Container[] | null | undefined): Problem[] {
  return (containers ?? []).flatMap(({ ports }, container) =>
    (ports ?? []).flatMap(({ name, containerPort }, index) => {
      const key = `${path}[${container}].ports[${index}]`;
      if (containerPort === PROXY_PORT || containerPort === ADMIN_PORT) {
        const expected = `a port other than the sidecar's, ${PROXY_PORT} and ${ADMIN_PORT}`;
        return [{ key: `${key}.containerPort`, value: String(containerPort), expected }];
      }
      if (name !== ADMIN_PORT_NAME) return [];
      return [{ key: `${key}.name`, value: name, expected: "a name other than that of the sidecar's port" }];
    }),
  );
}

/** What is suspicious but may be meant. */
export function warningsFor(pod: Pod, settings: SidecarSettings): readonly string[] {
  const { spec = {} } = pod;
  const warnings: string[] = [];
  if (spec.shareProcessNamespace === true) {
    warnings.push(
      "spec.shareProcessNamespace: processes of the same user or of root in other containers can read the sidecar's credentials",
    );
  }
  const claims = (spec.volumes ?? []).filter(({ persistentVolumeClaim }) => persistentVolumeClaim != null);
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
  for (const { name, env } of spec.containers ?? []) {
    const own = (env ?? []).filter((variable) => proxied.has(variable.name)).map((variable) => variable.name);
    if (own.length > 0) {
      warnings.push(
        `container ${name} sets ${own.join(', ')} itself and keeps it: it may not use the sidecar`,
      );
    }
  }
  return warnings;
}

/** All of them in one message, so that one attempt is enough to learn them. */
export function refusal(problems: readonly Problem[]): string {
  const all = problems.map(describeProblem);
  return `token-sidecar: the pod asks for the sidecar and cannot have it: ${all.join('; ')}`;
}
