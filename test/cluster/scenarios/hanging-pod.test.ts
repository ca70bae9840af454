import { expect, it } from 'vitest';
import { apply, get, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { clientSecret, ISSUER, replaceInjector } from '../support/release.ts';
import { inCluster, useShop } from '../support/scenario.ts';
import {
  type Annotations,
  askingForSidecar,
  callingTemplate,
  podsOf,
  readyPods,
  sidecarStatus,
} from '../support/workload.ts';

const SHOP = 'hanging-pod';
const STARTUP_SECONDS = 10;

inCluster('a pod whose sidecar gets no token', () => {
  useShop(SHOP);

  const deploy = (app: string, annotations: Annotations, replicas = 1): Promise<string> =>
    apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: app, namespace: SHOP },
      spec: {
        replicas,
        selector: { matchLabels: { app } },
        template: callingTemplate(app, askingForSidecar(SHOP, annotations)),
      },
    });

  /** How the sidecar of a pod ended that its startup probe gave up. */
  const ending = (app: string): Promise<{ readonly exitCode: number; readonly message?: string }> =>
    eventually('the startup probe has given up', 120, async () => {
      const [pod] = await podsOf(SHOP, app);
      const status = pod === undefined ? undefined : sidecarStatus(pod);
      return status?.lastState.terminated ?? status?.state.terminated;
    });

  it('says that the provider cannot be reached, and where it was looked for', async () => {
    await replaceInjector({
      'sidecar.startupSeconds': STARTUP_SECONDS,
      'injector.kubernetesApi.watchPods': true,
    });
    await deploy('astray', { 'token-sidecar.dev/auth-url': 'http://nowhere.invalid' });
    const { exitCode, message } = await ending('astray');
    expect(exitCode).toBe(69);
    expect(message).toContain('http://nowhere.invalid/realms/dx/protocol/openid-connect/token gave no token');
    const [pod] = await podsOf(SHOP, 'astray');
    const described = await kubectl('-n', SHOP, 'describe', 'pod', pod?.metadata.name ?? '');
    expect(described).toContain('gave no token');
    const told = await eventually('an Event tells the owner', 120, () => toldOwners(SHOP));
    expect(told).toMatch(/^ReplicaSet .*http:\/\/nowhere\.invalid.* gave no token/s);
    await kubectl('-n', SHOP, 'delete', 'deployment', 'astray');
  });

  it('says that the client is rejected, and which Secret it came from', async () => {
    await apply(clientSecret(SHOP, 'wrong', 'wrong'));
    await deploy('rejected', { 'token-sidecar.dev/secret': 'wrong' });
    const { exitCode, message } = await ending('rejected');
    expect(exitCode).toBe(77);
    expect(message).toContain(`${ISSUER}/realms/dx/protocol/openid-connect/token rejected the client`);
    await kubectl('-n', SHOP, 'delete', 'deployment', 'rejected');
  });

  it('is told from a healthy one, which reports no failed startup probe', async () => {
    await replaceInjector();
    // Where others keep the machine busy a program may take longer than its probe waits: then the next pod tells.
    const noises: (readonly string[])[] = [];
    for (const app of ['healthy-1', 'healthy-2', 'healthy-3', 'healthy-4', 'healthy-5']) {
      await deploy(app, {});
      await readyPods(SHOP, app, 1);
      const noise = await failedStartupProbes(app);
      if (noise.length === 0) return;
      noises.push(noise);
    }
    expect(noises).toEqual([]);
  });
});

/** What the kubelet said of startup probes that failed. */
async function failedStartupProbes(app: string): Promise<readonly string[]> {
  const { items } = await get<{
    items: readonly { readonly message: string; readonly involvedObject: { readonly name: string } }[];
  }>('events', '-n', SHOP, '--field-selector', 'reason=Unhealthy');
  return items
    .filter(({ involvedObject }) => involvedObject.name.startsWith(`${app}-`))
    .map(({ message }) => message)
    .filter((message) => message.startsWith('Startup probe failed'));
}

/** What an injector that watches pods said at their owners, with the first owner's kind before it. */
async function toldOwners(namespace: string): Promise<string | undefined> {
  const told = await kubectl(
    ...(['-n', namespace, 'get', 'events', '--field-selector', 'reason=TokenSidecarNoToken'] as const),
    ...['-o', 'jsonpath={.items[*].involvedObject.kind} {.items[*].message}'],
  );
  return told.trim() === '' ? undefined : told;
}
