/** Ports, paths and names that the sidecar needs where its settings say so, and what of a pod stands there already. */

import type { Problem } from '../../config/problems.ts';
import { type AppSettings, sidecarMounts } from './app-containers.ts';
import { REDIRECT_CONTAINER_NAME, TOKEN_ENDPOINT_PORT } from './names.ts';
import { containersOf, itemsOf, type PodSpec } from './pod.ts';
import type { SidecarSettings } from './sidecar-settings.ts';
import { takenPort } from './taken-ports.ts';

/** What a first pass finds, before anything of the sidecar is there. */
export function reservedObstacles(spec: PodSpec, settings: SidecarSettings): readonly Problem[] {
  return [
    ...(settings.tokenEndpoint ? takenPort(spec, TOKEN_ENDPOINT_PORT, 'where the sidecar gives tokens') : []),
    ...(settings.redirected === undefined ? [] : takenNames(spec)),
    ...takenPaths(spec, settings),
  ];
}

/** Two mounts at one path are refused by the API server, in words that do not tell whose the second one is. */
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

/** The API server has not looked at the pod's shape yet. */
function withoutSlash(path: unknown): string | undefined {
  return typeof path === 'string' ? path.replace(/\/$/, '') : undefined;
}

function takenNames(spec: PodSpec): readonly Problem[] {
  return containersOf(spec).flatMap(({ path, container: { name } }) =>
    name === REDIRECT_CONTAINER_NAME
      ? [{ key: `${path}.name`, value: name, expected: 'another name: the container that redirects has it' }]
      : [],
  );
}
