import { vi } from 'vitest';
import type { Container, ContainerOptions, Pod } from './pod.ts';

/** The parts of a pod's manifest that are understood here. */
export interface PodSpec {
  readonly initContainers?: readonly ContainerSpec[];
  readonly containers: readonly ContainerSpec[];
  readonly volumes?: readonly Volume[];
}

interface ContainerSpec {
  readonly name: string;
  readonly image: string;
  readonly restartPolicy?: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value: string }[];
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[];
  readonly startupProbe?: { readonly httpGet: { readonly path: string; readonly port: string | number } };
  readonly resources?: { readonly limits?: { readonly memory?: string } };
  readonly securityContext?: SecurityContext;
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
}

interface SecurityContext {
  readonly allowPrivilegeEscalation?: boolean;
  readonly readOnlyRootFilesystem?: boolean;
  readonly runAsUser?: number;
  readonly runAsGroup?: number;
  readonly capabilities?: { readonly drop?: readonly string[] };
}

interface Volume {
  readonly name: string;
  readonly hostPath?: { readonly path: string };
  readonly projected?: { readonly sources: readonly { readonly secret?: { readonly name: string } }[] };
}

/** Directories of Secret volumes by the name of the Secret. */
export type Secrets = Readonly<Record<string, string>>;

/**
 * Starts a pod's containers from its manifest as a kubelet does: native sidecars first, each waited for by its startup
 * probe, then the others.
 * @returns the containers by name.
 */
export async function startContainers(
  pod: Pod,
  spec: PodSpec,
  secrets: Secrets,
): Promise<Record<string, Container>> {
  const started: Record<string, Container> = {};
  const start = async (container: ContainerSpec) => {
    started[container.name] = await pod.run(container.name, optionsOf(container, spec, secrets));
  };
  for (const sidecar of spec.initContainers ?? []) {
    if (sidecar.restartPolicy !== 'Always') throw new Error(`${sidecar.name} is not a native sidecar`);
    await start(sidecar);
    await vi.waitFor(() => assertStarted(pod, sidecar), { timeout: 60_000, interval: 100 });
  }
  for (const container of spec.containers) await start(container);
  return started;
}

function optionsOf(container: ContainerSpec, spec: PodSpec, secrets: Secrets): ContainerOptions {
  const { image, command, args = [], env = [], volumeMounts = [] } = container;
  return {
    image,
    ...(command === undefined ? {} : { command }),
    args,
    env: Object.fromEntries(env.map(({ name, value }) => [name, value])),
    mounts: Object.fromEntries(
      volumeMounts.map(({ name, mountPath }) => [mountPath, directoryOf(name, spec, secrets)]),
    ),
    confinement: [...confinementOf(container.securityContext), ...limitsOf(container)],
  };
}

function confinementOf(context: SecurityContext = {}): string[] {
  const { runAsUser, runAsGroup, capabilities } = context;
  return [
    ...(context.readOnlyRootFilesystem ? ['--read-only', '--read-only-tmpfs=false'] : []),
    ...(context.allowPrivilegeEscalation === false ? ['--security-opt=no-new-privileges'] : []),
    ...(runAsUser === undefined
      ? []
      : [`--user=${runAsUser}${runAsGroup === undefined ? '' : `:${runAsGroup}`}`]),
    ...(capabilities?.drop ?? []).map((name) => `--cap-drop=${name.toLowerCase()}`),
  ];
}

function limitsOf({ resources }: ContainerSpec): string[] {
  const memory = resources?.limits?.memory;
  // podman's m is the manifest's Mi.
  return memory === undefined ? [] : [`--memory=${memory.replace(/Mi$/, 'm')}`];
}

function directoryOf(name: string, spec: PodSpec, secrets: Secrets): string {
  const volume = spec.volumes?.find((each) => each.name === name);
  const secret = volume?.projected?.sources[0]?.secret;
  const directory = secret === undefined ? volume?.hostPath?.path : secrets[secret.name];
  if (directory === undefined) throw new Error(`no directory stands for the volume ${name}`);
  return directory;
}

async function assertStarted(pod: Pod, { name, ports, startupProbe }: ContainerSpec): Promise<void> {
  if (startupProbe === undefined) return;
  const { path, port } = startupProbe.httpGet;
  const number = ports?.find((each) => each.name === port)?.containerPort ?? port;
  const { status } = await fetch(`http://${pod.address}:${number}${path}`);
  if (status !== 200) throw new Error(`${path} of ${name} answers ${status}`);
}
