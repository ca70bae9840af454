import { expect, it } from 'vitest';
import { apply, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { clientSecret, issuerClients } from '../support/release.ts';
import { inCluster, useShop } from '../support/scenario.ts';
import {
  askingForSidecar,
  callingTemplate,
  callsOn,
  isReady,
  metricOf,
  type Pod,
  podsOf,
  readyPods,
} from '../support/workload.ts';

const SHOP = 'credentials';

inCluster('the mounted Secret', () => {
  useShop(SHOP);

  const deploy = (app: string, secret: string): Promise<string> =>
    apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: app, namespace: SHOP },
      spec: {
        selector: { matchLabels: { app } },
        template: callingTemplate(app, askingForSidecar(SHOP, { 'token-sidecar.dev/secret': secret })),
      },
    });

  it('deleted while the pod runs: no request fails', async () => {
    await apply(clientSecret(SHOP, 'first', 'deleted'));
    await deploy('deleted', 'deleted');
    const [pod] = await readyPods(SHOP, 'deleted', 1);
    await kubectl('-n', SHOP, 'delete', 'secret', 'deleted');
    expect(await callsOn(pod as Pod, 200)).toMatchObject({ failed: 0 });
  });

  it('missing: the pod waits, says which Secret, and starts once it is there', async () => {
    await deploy('late', 'late');
    const event = await eventually('the kubelet names the Secret', 60, async () => {
      const events = await kubectl('-n', SHOP, 'get', 'events', '-o', 'jsonpath={.items[*].message}');
      return /"late" not found/.test(events);
    });
    expect(event).toBe(true);
    await apply(clientSecret(SHOP, 'first', 'late'));
    const [pod] = await readyPods(SHOP, 'late', 1, 180);
    expect(await callsOn(pod as Pod, 20)).toMatchObject({ failed: 0 });
  });

  it('wrong: the app is held back, and starts once the Secret is right', async () => {
    await apply(clientSecret(SHOP, 'wrong', 'wrong'));
    await deploy('wrong', 'wrong');
    const pod = await eventually('the sidecar has been refused', 60, async () => {
      const [found] = await podsOf(SHOP, 'wrong');
      if (found === undefined || found.status.podIP === undefined) return undefined;
      const refused = await metricOf(found, /^token_sidecar_token_refresh_total\{.*result="rejected"/);
      return (refused ?? 0) > 0 ? found : undefined;
    });
    expect(isReady(pod)).toBe(false);
    expect(
      (await kubectl('-n', SHOP, 'logs', pod.metadata.name, '-c', 'token-sidecar')).toString(),
    ).not.toContain('"client_secret"');
    await apply(clientSecret(SHOP, 'first', 'wrong'));
    const [ready] = await readyPods(SHOP, 'wrong', 1, 180);
    expect(await callsOn(ready as Pod, 20)).toMatchObject({ failed: 0 });
  });

  it('changed while the provider takes both secrets: no request fails', async () => {
    await apply(clientSecret(SHOP, 'first', 'rotated'));
    await deploy('rotated', 'rotated');
    const [pod] = await readyPods(SHOP, 'rotated', 1);
    await apply(issuerClients('first', 'second'));
    await apply(clientSecret(SHOP, 'second', 'rotated'));
    await eventually('the new secret is in use', 120, async () => {
      const reloads = await metricOf(
        pod as Pod,
        /^token_sidecar_credentials_reload_total\{(?=.*result="success")/,
      );
      return (reloads ?? 0) > 0;
    });
    await apply(issuerClients('second'));
    // Longer than a token lives.
    expect(await callsOn(pod as Pod, 600, 120)).toMatchObject({ failed: 0 });
    await apply(issuerClients('first', 'second'));
  });

  it('changed at the provider before the app is told: no request fails', async () => {
    await apply(clientSecret(SHOP, 'first', 'early'), issuerClients('first'));
    await deploy('early', 'early');
    const [pod] = await readyPods(SHOP, 'early', 1);
    await apply(issuerClients('second'));
    await eventually('the old secret is refused', 120, async () => {
      const refused = await metricOf(
        pod as Pod,
        /^token_sidecar_token_refresh_total\{(?=.*result="rejected")/,
      );
      return (refused ?? 0) > 0;
    });
    await apply(clientSecret(SHOP, 'second', 'early'));
    expect(await callsOn(pod as Pod, 600, 120)).toMatchObject({ failed: 0 });
    await apply(issuerClients('first', 'second'));
  });
});
