import { afterAll, expect, it } from 'vitest';
import { bracketed, FAMILIES } from '../node/addresses.ts';
import { apply, get, kubectl } from '../node/kubectl.ts';
import { inNamespace } from '../node/network.ts';
import { installChart, NAMESPACE, RELEASE } from '../support/release.ts';
import { inClusterWhere, useShop } from '../support/scenario.ts';
import {
  type Annotations,
  askingForSidecar,
  callingTemplate,
  callsOn,
  type Pod,
  readyPods,
} from '../support/workload.ts';

const SHOP = 'dual-stack';

interface Service {
  readonly spec: { readonly clusterIPs: readonly string[] };
}

inClusterWhere(FAMILIES.length === 2)('where pods and Services have IPv4 and IPv6', () => {
  useShop(SHOP);
  afterAll(() => installChart());

  const deploy = async (app: string, more: Annotations): Promise<Pod> => {
    await apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: app, namespace: SHOP },
      spec: {
        selector: { matchLabels: { app } },
        template: callingTemplate(app, askingForSidecar(SHOP, more)),
      },
    });
    const [pod] = await readyPods(SHOP, app, 1);
    return pod as Pod;
  };

  it('the release has Services of both families', async () => {
    await installChart({
      bindAddress: '[::]',
      'issuer.service.ipFamilyPolicy': 'RequireDualStack',
      'injector.service.ipFamilyPolicy': 'RequireDualStack',
    });
    for (const service of [`${RELEASE}-issuer`, `${RELEASE}-injector`]) {
      const { spec } = await get<Service>('service', service, '-n', NAMESPACE);
      expect(spec.clusterIPs.map((address) => address.includes(':'))).toEqual([false, true]);
    }
  });

  it('a pod is probed by IPv4, and its sidecar answers by each of its addresses', async () => {
    const pod = await deploy('probed', {});
    const addresses = (pod.status.podIPs ?? []).map(({ ip }) => ip);
    expect(addresses.map((address) => address.includes(':'))).toEqual([false, true]);
    for (const address of addresses) {
      const url = `http://${bracketed(address)}:15081/livez`;
      const ask = `const { status } = await fetch(${JSON.stringify(url)}); console.log(status)`;
      expect(await inNamespace(process.execPath, '--input-type=module', '--eval', ask)).toBe('200\n');
    }
  });

  it('a provider and an upstream that have IPv6 alone are reached', async () => {
    const [, issuer] = (await get<Service>('service', `${RELEASE}-issuer`, '-n', NAMESPACE)).spec.clusterIPs;
    await apply({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'api-by-ipv6', namespace: SHOP },
      spec: {
        ipFamilyPolicy: 'SingleStack',
        ipFamilies: ['IPv6'],
        selector: { app: 'api' },
        ports: [{ port: 8080 }],
      },
    });
    const pod = await deploy('by-ipv6', {
      'token-sidecar.dev/upstream': `http://api-by-ipv6.${SHOP}.svc:8080`,
      'token-sidecar.dev/auth-url': `http://${bracketed(issuer ?? '')}:15090`,
    });
    expect(await callsOn(pod, 20)).toMatchObject({ failed: 0 });
    expect(
      await kubectl('-n', SHOP, 'get', 'service', 'api-by-ipv6', '-o', 'jsonpath={.spec.clusterIP}'),
    ).toContain(':');
  });
});
