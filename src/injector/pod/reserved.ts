/** Ports, paths and names that the sidecar's settings require, and what in a pod already occupies them. */

import type { Problem } from '../../platform/problems.ts';
import { type AppSettings, sidecarMounts } from './app-containers.ts';
import { REDIRECT_CONTAINER_NAME, TOKEN_ENDPOINT_PORT } from './names.ts';
import { containersOf, itemsOf, type PodSpec } from './pod.ts';
import type { SidecarSettings } from './sidecar-settings.ts';
import { takenPort } from './taken-ports.ts';

/** Checked in a first pass, before anything of the sidecar is there. */
export function reservedObstacles(spec: PodSpec, settings: SidecarSettings): readonly Problem[] {
  return [
    ...(settings.tokenEndpoint ? takenPort(spec, TOKEN_ENDPOINT_PORT, 'where the sidecar gives tokens') : []),
    ...(settings.redirected === undefined ? [] : takenNames(spec)),
    ...takenPaths(spec, settings),
  ];
}

/** The API server refuses two mounts at one path, but its message does not say whose the second one is. */
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

/** The API server has not validated the pod's shape yet. */
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
