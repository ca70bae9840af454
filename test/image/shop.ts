import { rm } from 'node:fs/promises';
import { vi } from 'vitest';
import type { KubeletSecret } from '../../src/platform/mounted/secret-layout.ts';
import { type Container, openPod, type Pod } from './pod.ts';
import { runProgram } from './programs.ts';
import { API_URL, AUTH_URL, type Provider, startProvider } from './provider.ts';
import { makeSecretVolume } from './secret-volume.ts';

export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** A pod of an app, the sidecar and an issuer, with an API that verifies tokens; the client is called `shop`. */
export interface Shop {
  readonly pod: Pod;
  readonly sidecar: Container;
  readonly provider: Provider;
  /** What the sidecar has mounted. */
  readonly secret: KubeletSecret;
  remove(): Promise<void>;
}

/** Resolves once the app's requests are served. */
export async function openShop(podName: string, clientSecret: string): Promise<Shop> {
  const secret = await makeSecretVolume({ client_id: 'shop', client_secret: clientSecret });
  const pod = await openPod(podName);
  const provider = await startProvider(pod, clientSecret);
  const sidecar = await pod.run('sidecar', {
    env: { TOKEN_SIDECAR_AUTH_URL: AUTH_URL, TOKEN_SIDECAR_UPSTREAM: API_URL },
    mounts: { '/var/run/secrets/token-sidecar': secret.directory },
  });
  await runProgram(pod, 'app');
  await vi.waitFor(() => assertServed(pod), { timeout: 60_000, interval: 100 });
  return {
    pod,
    sidecar,
    provider,
    secret,
    async remove() {
      await pod.remove();
      await provider.remove();
      await rm(secret.directory, { recursive: true });
    },
  };
}

/** Lets the app send a request through the sidecar, and gives what the app got. */
export const callThroughApp = (pod: Pod, path: string): Promise<Answer> => ask(pod, 8080, path);

/** Asks the sidecar's admin listener from outside the pod, as the kubelet and Prometheus do. */
export const askAdmin = (pod: Pod, path: string): Promise<Answer> => ask(pod, 15_081, path);

export async function ask(pod: Pod, port: number, path: string): Promise<Answer> {
  const response = await fetch(`http://${pod.address}:${port}${path}`);
  return { status: response.status, body: await response.text() };
}

async function assertServed(pod: Pod): Promise<void> {
  const { status, body } = await callThroughApp(pod, '/');
  if (status !== 200) throw new Error(`the app gets ${status}: ${body}`);
}
