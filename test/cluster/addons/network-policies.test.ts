/** The chart's NetworkPolicies, and those of app teams, where something enforces them. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse } from 'yaml';
import { ROOT } from '../../image/container-tools.ts';
import { ADDRESSES, inEveryFamily } from '../node/addresses.ts';
import { inPki, issue } from '../node/certificates.ts';
import { apply, create, get, helm, kubectl } from '../node/kubectl.ts';
import { eventually, run } from '../node/run.ts';
import { ask, serviceAccountToken } from '../support/asking.ts';
import { type Component, readyReplicas } from '../support/faults.ts';
import { networkOf, reach } from '../support/reaching.ts';
import {
  clientSecret,
  deleteNamespace,
  ISSUER,
  installChart,
  makeReleaseNamespace,
  NAMESPACE,
  namespace,
  RELEASE,
  replaceInjector,
} from '../support/release.ts';
import { hasPolicies, inCluster } from '../support/scenario.ts';
import {
  type Annotations,
  API_URL,
  askingForSidecar,
  callingTemplate,
  callsOn,
  container,
  type Pod,
  podsOf,
  protectedApi,
  readyPods,
  SECURE_POD,
  sidecarStatus,
} from '../support/workload.ts';
import { startEnforcing, stopEnforcing } from './enforcer.ts';

const SHOP = 'policies-shop';
const ELSEWHERE = 'policies-elsewhere';
const MONITORING = 'policies-monitoring';
/** With the policy of docs/reference/networks.md. */
const CLOSED = 'policies-closed';
const NAMESPACES = [SHOP, ELSEWHERE, MONITORING, CLOSED] as const;

const GATEWAY = `${RELEASE}-gateway`;
const SECRET = 'orders-oauth';

const addresses = (...each: readonly string[]) =>
  each.map((address) => ({ ipBlock: { cidr: `${address}/${address.includes(':') ? 128 : 32}` } }));
const podsIn = (name: string) => ({
  namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } },
});
/** Of the release. */
const replicas = (component: string) => ({
  podSelector: { matchLabels: { 'app.kubernetes.io/component': component } },
});

/** Everything is closed that can be closed. */
const VALUES = {
  'crds.enabled': true,
  'injector.profiles.enabled': true,
  'sidecar.startupSeconds': 20,
  'broker.enabled': true,
  'broker.secrets': [SECRET],
  'gateway.enabled': true,
  'gateway.callers': [{ name: 'shop', match: { serviceAccount: `${SHOP}/default` }, allowedRoutes: ['api'] }],
  'gateway.credentials': [
    {
      name: 'api',
      tokenUrl: `${ISSUER}/realms/dx/protocol/openid-connect/token`,
      allowInsecureTokenUrl: true,
      audience: 'api',
      secret: { name: SECRET },
    },
  ],
  'gateway.routes': [{ name: 'api', upstream: API_URL.replace('SHOP', SHOP), credential: 'api' }],
  'gateway.certificates.existing.secretName': 'gateway-tls',
  'networkPolicy.enabled': true,
  'networkPolicy.apiServerTo': addresses(...inEveryFamily('node')),
  'networkPolicy.webhookFrom': addresses(...inEveryFamily('node')),
  'networkPolicy.metricsFrom': [podsIn(MONITORING)],
  'networkPolicy.issuerFrom': [podsIn(SHOP), replicas('broker'), replicas('gateway')],
  'networkPolicy.issuerAdminFrom': [podsIn(SHOP)],
  'networkPolicy.brokerFrom': [podsIn(SHOP), podsIn(CLOSED)],
  'networkPolicy.brokerTo': [replicas('issuer')],
  'networkPolicy.gatewayFrom': [podsIn(SHOP)],
  'networkPolicy.gatewayTo': [replicas('issuer'), podsIn(SHOP)],
};

/** Admits them all: what differs is whom the network lets through. */
const PROFILE = {
  apiVersion: 'token-sidecar.dev/v1alpha1',
  kind: 'ClusterTokenProfile',
  metadata: { name: 'policies' },
  spec: {
    namespaces: { names: [SHOP, ELSEWHERE, CLOSED] },
    credentials: [
      {
        via: 'broker',
        authUrl: ISSUER,
        allowInsecureTokenUrl: true,
        audience: 'api',
        secret: { name: SECRET },
      },
    ],
    routes: [{ upstream: API_URL.replace('SHOP', SHOP) }],
  },
};
const BY_BROKER = { 'token-sidecar.dev/inject': 'true', 'token-sidecar.dev/profile': 'policies' };

/** A pod that does nothing by itself. */
const idle = (inNamespace: string): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'client', namespace: inNamespace, labels: { app: 'client' } },
  spec: {
    terminationGracePeriodSeconds: 0,
    securityContext: SECURE_POD,
    containers: [{ ...container('caller'), command: ['node', '--eval', 'setInterval(() => {}, 2 ** 30)'] }],
  },
});

const deploy = (app: string, inNamespace: string, annotations: Annotations): Promise<string> =>
  apply({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: app, namespace: inNamespace },
    spec: { selector: { matchLabels: { app } }, template: callingTemplate(app, annotations) },
  });

const policy = (name: string, spec: object): object => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name, namespace: SHOP },
  spec,
});

async function serviceAddress(name: string, inNamespace: string): Promise<string> {
  const { spec } = await get<{ spec: { clusterIP: string } }>('service', name, '-n', inNamespace);
  return spec.clusterIP;
}

async function only(inNamespace: string, app: string): Promise<Pod> {
  const [pod] = await readyPods(inNamespace, app, 1);
  return pod as Pod;
}

async function replica(component: Component | 'injector'): Promise<Pod> {
  if (component === 'issuer') return (await readyReplicas(component, 1))[0] as Pod;
  return (await readyReplicas(component as Component, 2))[0] as Pod;
}

inCluster('NetworkPolicies, where something enforces them,', () => {
  const clients = {} as Record<(typeof NAMESPACES)[number], Pod>;
  let api: Pod;

  beforeAll(async () => {
    await makeReleaseNamespace('first');
    await apply(...NAMESPACES.flatMap((name) => [namespace(name), idle(name)]), ...protectedApi(SHOP));
    for (const name of NAMESPACES) clients[name] = await only(name, 'client');
    api = await only(SHOP, 'api');
    await startEnforcing();
    await issue('policies-gateway', '/CN=gateway', `DNS:${GATEWAY}.${NAMESPACE}.svc`);
    await apply(clientSecret(SHOP, 'first'), clientSecret(NAMESPACE, 'first', SECRET), {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/tls',
      metadata: { name: 'gateway-tls', namespace: NAMESPACE },
      stringData: {
        'tls.crt': readFileSync(inPki('policies-gateway.crt'), 'utf8'),
        'tls.key': readFileSync(inPki('policies-gateway.key'), 'utf8'),
      },
    });
  });
  afterAll(async () => {
    await stopEnforcing();
    await kubectl('delete', 'clustertokenprofile', 'policies', '--ignore-not-found').catch(() => undefined);
    await helm('uninstall', RELEASE, '--namespace', NAMESPACE, '--wait', '--ignore-not-found');
    for (const name of NAMESPACES) await deleteNamespace(name);
  });

  it('cut what they forbid, and let it through again when they are gone', async () => {
    const address = api.status.podIP ?? '';
    const service = await serviceAddress('api', SHOP);
    const look = () => reach(clients[ELSEWHERE], { pod: [address, 8080], service: [service, 8080] });
    expect(await look()).toEqual({ pod: 'connected', service: 'connected' });
    await apply(policy('nothing', { podSelector: {}, policyTypes: ['Ingress', 'Egress'] }));
    await eventually('both ways are cut', 30, async () => {
      const { pod, service: byService } = await look();
      return pod === 'cut' && byService === 'cut';
    });
    // To the node's own programs, too.
    expect(await reach(clients[SHOP], { api: [ADDRESSES.apiService, 443] })).toEqual({ api: 'cut' });
    await kubectl('-n', SHOP, 'delete', 'networkpolicy', 'nothing');
    await eventually('both are open', 30, async () => {
      const { pod, service: byService } = await look();
      return pod === 'connected' && byService === 'connected';
    });
  });

  it('let the release be installed, and its own check finds that the webhook answers', async () => {
    await installChart(VALUES);
    expect(await helm('test', RELEASE, '--namespace', NAMESPACE, '--timeout', '120s')).toMatch(
      /Phase:\s+Succeeded/,
    );
  });

  it('let pods have their sidecar and its tokens, and nobody but the API server calls the webhook', async () => {
    await deploy('app', SHOP, askingForSidecar(SHOP));
    expect(await callsOn(await only(SHOP, 'app'), 20)).toMatchObject({ failed: 0 });
    const webhook = await serviceAddress(`${RELEASE}-injector`, NAMESPACE);
    for (const name of NAMESPACES) {
      expect(await reach(clients[name], { webhook: [webhook, 443] }), name).toEqual({ webhook: 'cut' });
    }
  });

  it.runIf(hasPolicies)(
    'that keep the API server from the webhook: the pod is refused, with the reason',
    async () => {
      // What the API server has open goes on; new replicas have new connections.
      const closed = { 'networkPolicy.webhookFrom': addresses('192.0.2.1'), 'injector.logLevel': 'debug' };
      await replaceInjector({ ...VALUES, ...closed });
      const pod = (name: string): object => {
        const template = callingTemplate(name, askingForSidecar(SHOP)) as { metadata: object; spec: object };
        return {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { ...template.metadata, name, namespace: SHOP },
          spec: template.spec,
        };
      };
      await eventually('a pod is refused', 60, () =>
        create(pod('refused'), '--dry-run=server').then(
          () => false,
          (error) => {
            expect(String(error)).toMatch(/asks for the token sidecar .* did not get it/s);
            return true;
          },
        ),
      );
      await replaceInjector(VALUES);
      await eventually('pods are admitted again', 60, () => create(pod('admitted'), '--dry-run=server'));
    },
    400_000,
  );

  it('let the broker serve the namespaces that it may hear; elsewhere a pod says that it is not reached', async () => {
    await eventually('the profile is known', 60, async () => {
      await apply(PROFILE);
      return true;
    });
    await deploy('brokered', SHOP, BY_BROKER);
    expect(await callsOn(await only(SHOP, 'brokered'), 20)).toMatchObject({ failed: 0 });
    await deploy('brokered', ELSEWHERE, BY_BROKER);
    const { exitCode, message } = await eventually('its startup probe has given up', 120, async () => {
      const [pod] = await podsOf(ELSEWHERE, 'brokered');
      const status = pod === undefined ? undefined : sidecarStatus(pod);
      return status?.lastState.terminated ?? status?.state.terminated;
    });
    expect(exitCode).toBe(69);
    expect(message).toContain(`https://${RELEASE}-broker.${NAMESPACE}.svc:15084`);
    await kubectl('-n', ELSEWHERE, 'delete', 'deployment', 'brokered');
  });

  it('let the gateway serve the namespaces that it may hear, with what it needs behind it', async () => {
    const token = await serviceAccountToken({ namespace: SHOP, audience: 'token-sidecar-gateway' });
    const { status } = await ask({
      from: clients[SHOP],
      service: `${NAMESPACE}/${GATEWAY}`,
      port: 15_443,
      path: '/',
      ca: readFileSync(inPki('ca.crt'), 'utf8'),
      headers: { 'token-sidecar-caller': token },
    });
    expect(status).toBe(200);
    const gateway = await serviceAddress(GATEWAY, NAMESPACE);
    for (const name of [ELSEWHERE, MONITORING, CLOSED] as const) {
      expect(await reach(clients[name], { gateway: [gateway, 15_443] }), name).toEqual({ gateway: 'cut' });
    }
  });

  it('as the documentation has them, in a namespace of apps, leave the sidecar what it needs', async () => {
    await apply(documentedPolicy());
    await deploy('brokered', CLOSED, BY_BROKER);
    const pod = await only(CLOSED, 'brokered');
    expect(await callsOn(pod, 20)).toMatchObject({ failed: 0 });
    const provider = await serviceAddress(`${RELEASE}-issuer`, NAMESPACE);
    const elsewhere = clients[ELSEWHERE].status.podIP ?? '';
    expect(await reach(pod, { provider: [provider, 15_090], elsewhere: [elsewhere, 8080] })).toEqual({
      provider: 'cut',
      elsewhere: 'cut',
    });
    const metrics = { metrics: [pod.status.podIP ?? '', 15_081] } as const;
    expect(await reach(clients[MONITORING], metrics)).toEqual({ metrics: 'connected' });
    expect(await reach(clients[ELSEWHERE], metrics)).toEqual({ metrics: 'cut' });
  });

  it('open metrics to those that scrape, and to nobody else', async () => {
    const components = ['injector', 'broker', 'gateway', 'issuer'] as const;
    const targets: Record<string, readonly [string, number]> = {};
    for (const component of components) {
      const { status } = await replica(component);
      targets[component] = [status.podIP ?? '', component === 'issuer' ? 15_091 : 15_081];
    }
    const all = (how: string) => Object.fromEntries(components.map((component) => [component, how]));
    expect(await reach(clients[MONITORING], targets)).toEqual(all('connected'));
    expect(await reach(clients[ELSEWHERE], targets)).toEqual(all('cut'));
    // Verifiers of the shop read the issuer's keys there.
    expect(await reach(clients[SHOP], targets)).toEqual({ ...all('cut'), issuer: 'connected' });
  });

  it.each([
    ['injector', ['apiServer', 'dns']],
    ['broker', ['apiServer', 'dns', 'issuer']],
    ['gateway', ['apiServer', 'dns', 'issuer', 'upstream']],
    ['issuer', []],
  ] as const)('let the %s reach what it needs, and nothing else', async (component, open) => {
    const pod = await replica(component);
    const targets = {
      apiServer: [ADDRESSES.apiService, 443],
      dns: [ADDRESSES.dnsService, 53],
      issuer: [await serviceAddress(`${RELEASE}-issuer`, NAMESPACE), 15_090],
      upstream: [api.status.podIP ?? '', 8080],
      elsewhere: [clients[ELSEWHERE].status.podIP ?? '', 8080],
      // The same machine on another port.
      kubelet: [ADDRESSES.node, 10_250],
      outside: [ADDRESSES.host, 443],
    } as const;
    const expected = Object.keys(targets).map((name) => [
      name,
      (open as readonly string[]).includes(name) ? 'connected' : 'cut',
    ]);
    expect(await reach(pod, targets)).toEqual(Object.fromEntries(expected));
    const found = lookUp(pod, 'kubernetes.default.svc.cluster.local');
    if ((open as readonly string[]).includes('dns')) expect(await found).toBe(ADDRESSES.apiService);
    else await expect(found).rejects.toThrow('TIMEOUT');
  });
});

/** With the namespaces of these scenarios for those of the page. */
function documentedPolicy(): object {
  const page = readFileSync(join(ROOT, 'docs/reference/networks.md'), 'utf8');
  const [, text = ''] = /```yaml\n(apiVersion: networking[^`]+)```/.exec(page) ?? [];
  const names = { monitoring: MONITORING, payments: SHOP, shop: CLOSED };
  return parse(text, (_key, value: unknown) => names[value as keyof typeof names] ?? value) as object;
}

/** By UDP, as programs look names up. */
async function lookUp(from: Pod, name: string): Promise<string> {
  const [enter, ...entered] = await networkOf(from);
  const program = `
    import { Resolver } from 'node:dns/promises';
    const resolver = new Resolver({ timeout: 1500, tries: 2 });
    resolver.setServers(['${ADDRESSES.dnsService.includes(':') ? `[${ADDRESSES.dnsService}]` : ADDRESSES.dnsService}']);
    const [address] = await resolver.resolve('${name}', '${ADDRESSES.dnsService.includes(':') ? 'AAAA' : 'A'}');
    process.stdout.write(address);`;
  return run(enter, [...entered, process.execPath, '--input-type=module', '--eval', program]);
}
