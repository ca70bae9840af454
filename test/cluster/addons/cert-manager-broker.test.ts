import { afterAll, beforeAll, expect, it } from 'vitest';
import { apply, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { expectNoFailure, readyReplicas } from '../support/faults.ts';
import { clientSecret, ISSUER, installChart, NAMESPACE, RELEASE } from '../support/release.ts';
import { inCluster, useShop } from '../support/scenario.ts';
import { API_URL, callingTemplate, metricOf, type Pod, readyPods } from '../support/workload.ts';
import { startCertManager, stopCertManager } from './cert-manager.ts';
import { everyReplicaShows, issued, readyCertificate, renew } from './certificate.ts';

const SHOP = 'cert-manager-broker';
const CERTIFICATE = `${RELEASE}-broker-cert-manager`;
const AUTHORITY = `${RELEASE}-broker-ca`;
const SECRET = 'orders-oauth';

const VALUES = {
  'crds.enabled': true,
  'injector.profiles.enabled': true,
  'broker.enabled': true,
  'broker.secrets': [SECRET],
  'broker.certificates.source': 'cert-manager',
};

const PROFILE = {
  apiVersion: 'token-sidecar.dev/v1alpha1',
  kind: 'ClusterTokenProfile',
  metadata: { name: SHOP },
  spec: {
    namespaces: { names: [SHOP] },
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

const grantsOf = async (pod: Pod): Promise<number> =>
  (await metricOf(pod, /^token_sidecar_token_refresh_total\{.*result="success"/)) ?? 0;

inCluster('the broker, with a certificate of cert-manager', () => {
  let pods: readonly Pod[] = [];

  useShop(SHOP);
  beforeAll(async () => {
    await startCertManager();
    await apply(clientSecret(NAMESPACE, 'first', SECRET));
    await installChart(VALUES);
    await readyCertificate(NAMESPACE, CERTIFICATE);
    await apply(PROFILE);
    await readyReplicas('broker', 2);
  });
  afterAll(async () => {
    await kubectl('delete', 'clustertokenprofile', SHOP, '--ignore-not-found');
    // Before its kinds go, which Helm has to know to delete what is of them.
    await installChart();
    await stopCertManager();
  });

  it('gives tokens to pods, which know it by the CA that the chart has made', async () => {
    const annotations = { 'token-sidecar.dev/inject': 'true', 'token-sidecar.dev/profile': SHOP };
    await apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'app', namespace: SHOP },
      spec: {
        replicas: 3,
        selector: { matchLabels: { app: 'app' } },
        template: callingTemplate('app', annotations),
      },
    });
    pods = await readyPods(SHOP, 'app', 3);
    await expectNoFailure(pods, 20);
  });

  it('renewed after its CA was, gives further tokens to pods that know the CA of before', async () => {
    const before = await issued(NAMESPACE, CERTIFICATE);
    await renew(NAMESPACE, AUTHORITY);
    await renew(NAMESPACE, CERTIFICATE);
    const { ca, key } = await issued(NAMESPACE, CERTIFICATE);
    expect(ca).not.toBe(before.ca);
    expect(key).not.toBe(before.key);
    await everyReplicaShows('broker', CERTIFICATE);
    for (const pod of pods) {
      const grants = await grantsOf(pod);
      await eventually('the next token', 90, async () => (await grantsOf(pod)) > grants + 1);
    }
    await expectNoFailure(pods);
  });
});
