import { inspect, podman } from './container-tools.ts';
import { IMAGE } from './image.ts';

/** What the restricted Pod Security Standard asks of a container, and a root file system that can't be written. */
export const RESTRICTED = [
  '--read-only',
  '--read-only-tmpfs=false',
  '--cap-drop=all',
  '--security-opt=no-new-privileges',
];

export interface ContainerOptions {
  /** The image under test unless given. */
  readonly image?: string;
  /** Instead of the image's entrypoint. */
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Directories of this machine, by where they are mounted; read-only. */
  readonly mounts?: Readonly<Record<string, string>>;
  /** As options of `podman run`; RESTRICTED unless given. */
  readonly confinement?: readonly string[];
}

export interface Container {
  readonly name: string;
  /** Of its first process, as this machine numbers it. */
  readonly processId: number;
  /** Standard output and standard error so far. */
  log(): Promise<string>;
  /** Sends SIGTERM and waits; resolves with the exit status. */
  stop(): Promise<number>;
}

/** Containers that share a network, as those of a Kubernetes pod do. */
export interface Pod {
  /** Reachable from this machine, which stands for the node's kubelet. */
  readonly address: string;
  run(name: string, options: ContainerOptions): Promise<Container>;
  remove(): Promise<void>;
}

const GRACE_SECONDS = 30;

export async function openPod(podName: string): Promise<Pod> {
  await podman('pod', 'create', '--name', podName);
  await podman('pod', 'start', podName);
  const { InfraContainerID: infra } = await inspectPod(podName);
  const { NetworkSettings } = await inspect<NetworkDescription>(infra);
  const [network] = Object.values(NetworkSettings.Networks);
  if (network === undefined) throw new Error(`the pod ${podName} has no network`);

  async function runContainer(containerName: string, options: ContainerOptions): Promise<Container> {
    const { image = IMAGE, command, args = [], env = {}, mounts = {}, confinement = RESTRICTED } = options;
    const name = `${podName}-${containerName}`;
    const [entrypoint, ...commandArgs] = command ?? [];
    await podman(
      ...['run', '--detach', '--pull=never', '--pod', podName, '--name', name],
      ...confinement,
      ...Object.entries(env).map(([variable, value]) => `--env=${variable}=${value}`),
      ...Object.entries(mounts).map(([target, source]) => `--volume=${source}:${target}:ro`),
      ...(entrypoint === undefined ? [] : [`--entrypoint=${entrypoint}`]),
      image,
      ...commandArgs,
      ...args,
    );
    const { State } = await inspect<StateDescription>(name);
    return {
      name,
      processId: State.Pid,
      log: () => podman('logs', name),
      async stop() {
        await podman('stop', '--time', String(GRACE_SECONDS), name);
        return (await inspect<StateDescription>(name)).State.ExitCode;
      },
    };
  }

  return {
    address: network.IPAddress,
    run: runContainer,
    async remove() {
      await podman('pod', 'rm', '--force', '--time', '0', podName);
    },
  };
}

interface StateDescription {
  readonly State: { readonly Pid: number; readonly ExitCode: number };
}

interface NetworkDescription {
  readonly NetworkSettings: { readonly Networks: Readonly<Record<string, { readonly IPAddress: string }>> };
}

async function inspectPod(name: string): Promise<{ readonly InfraContainerID: string }> {
  const described = JSON.parse(await podman('pod', 'inspect', name)) as unknown;
  // podman 5 gives a list.
  return (Array.isArray(described) ? described[0] : described) as { readonly InfraContainerID: string };
}
