import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ROOT } from '../../image/container-tools.ts';
import { FAMILIES } from '../node/addresses.ts';
import { apply, get, helm, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { clientSecret, deleteNamespace, ISSUER, namespace, RELEASE } from '../support/release.ts';
import { hasPolicies, inCluster, useShop } from '../support/scenario.ts';
import { unscheduledPod } from '../support/unscheduled-pods.ts';
import { askingForSidecar, callingTemplate, type Pod, podsOf } from '../support/workload.ts';

/** Served by the first release alone. */
const SHOP = 'one-release';
/** Labelled for the second one, and served by both. */
const LABELLED = 'two-releases';
const SECOND = 'second';

/** By which a pod of the second release is told from one of the first. */
const LOG_LEVEL = 'warn';

/** Log levels of a new pod's sidecars: one for each that it has. */
async function sidecarsOf(inNamespace: string, name: string): Promise<readonly (string | undefined)[]> {
  await apply(unscheduledPod(inNamespace, name, name));
  const [pod] = await podsOf(inNamespace, name);
  const { containers, initContainers = [] } = (pod as Pod).spec;
  return [...initContainers, ...containers]
    .filter((container) => container.name === 'token-sidecar')
    .map(({ env = [] }) => env.find((variable) => variable.name === 'TOKEN_SIDECAR_LOG_LEVEL')?.value);
}

inCluster('two releases in one cluster', () => {
  useShop(SHOP);
  beforeAll(async () => {
    const label = { 'token-sidecar.dev/injection': 'enabled' };
    await apply(namespace(SECOND), namespace(LABELLED, label), clientSecret(LABELLED, 'first'));
    const values = {
      ...(FAMILIES.includes('IPv4') ? {} : { bindAddress: '[::]' }),
      'sidecar.authUrl': ISSUER,
      'sidecar.allowInsecureTokenUrl': true,
      'sidecar.logLevel': LOG_LEVEL,
      'injector.webhook.namespaces': 'labelled',
    };
    await helm(
      ...(['install', SECOND, join(ROOT, 'charts/token-sidecar'), '--namespace', SECOND] as const),
      ...['--wait', '--timeout', '150s'],
      ...Object.entries(values).flatMap(([name, value]) => [
        '--set-json',
        `${name}=${JSON.stringify(value)}`,
      ]),
    );
  });
  afterAll(async () => {
    await helm('uninstall', SECOND, '--namespace', SECOND, '--ignore-not-found', '--wait');
    await deleteNamespace(LABELLED);
    await deleteNamespace(SECOND);
  });

  it('a pod of a namespace that both serve has one sidecar, and one of another namespace that of the first', async () => {
    // API servers take a moment to notice a webhook.
    await eventually('the second release serves the labelled namespace', 60, async () => {
      const sidecars = await sidecarsOf(LABELLED, 'both');
      await kubectl('-n', LABELLED, 'delete', 'pod', 'both', '--grace-period=0', '--force');
      expect(sidecars).toEqual([LOG_LEVEL]);
      return true;
    });
    expect(await sidecarsOf(SHOP, 'first-alone')).toEqual(['info']);
  });

  it.runIf(hasPolicies)(
    'whoever asks in a namespace that the second one does not serve is told so, and nobody else',
    async () => {
      const annotated = async (inNamespace: string): Promise<string> => {
        await apply({
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          metadata: { name: 'told', namespace: inNamespace },
          spec: {
            replicas: 0,
            selector: { matchLabels: { app: 'told' } },
            template: callingTemplate('told', askingForSidecar(inNamespace)),
          },
        });
        return kubectl(
          '-n',
          inNamespace,
          'annotate',
          'deployment',
          'told',
          'looked=yes',
          '--warnings-as-errors',
        );
      };
      await expect(annotated(SHOP)).rejects.toThrow(
        /the injector in second does not serve the namespace one-release, but only those with the label/,
      );
      await expect(annotated(LABELLED)).resolves.toContain('annotated');
    },
  );

  it('the second one uninstalled, the first serves both as it did', async () => {
    await helm('uninstall', SECOND, '--namespace', SECOND, '--wait');
    expect(await sidecarsOf(LABELLED, 'left')).toEqual(['info']);
    expect(await sidecarsOf(SHOP, 'still')).toEqual(['info']);
    const { items } = await get<{ items: { metadata: { name: string } }[] }>('mutatingwebhookconfigurations');
    const ours = items.map(({ metadata }) => metadata.name).filter((name) => name.includes(RELEASE));
    expect(ours).toEqual(['token-sidecar-token-sidecar-injector']);
  });
});
