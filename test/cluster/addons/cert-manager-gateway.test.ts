import { afterAll, beforeAll, expect, it } from 'vitest';
import { apply } from '../node/kubectl.ts';
import { ask } from '../support/asking.ts';
import { expectNoFailure, totalOf } from '../support/faults.ts';
import { GATEWAY, gatewayCaller } from '../support/gateway-caller.ts';
import { clientSecret, installChart, NAMESPACE, RELEASE } from '../support/release.ts';
import { inCluster, useShop } from '../support/scenario.ts';
import { API_URL, type Pod, readyPods } from '../support/workload.ts';
import { startCertManager, stopCertManager } from './cert-manager.ts';
import {
  COMPANY,
  certificate,
  everyReplicaShows,
  issued,
  provideCompanyIssuer,
  readyCertificate,
  renew,
} from './certificate.ts';

const SHOP = 'cert-manager-gateway';
const SPIFFE_ID = `spiffe://cluster.local/ns/${SHOP}/sa/by-spiffe-id`;
const DNS_NAME = 'reports.example.com';
const CERTIFICATE = `${GATEWAY}-certificate`;

const VALUES = {
  'gateway.enabled': true,
  'gateway.serviceAccountTokens.enabled': false,
  'gateway.callers': [
    { name: 'workloads', match: { spiffe: SPIFFE_ID }, allowedRoutes: ['api'] },
    { name: 'reports', match: { certificate: DNS_NAME }, allowedRoutes: ['api'] },
  ],
  'gateway.credentials': [
    {
      name: 'api',
      // The issuer of the release, which is plain HTTP.
      tokenUrl: `http://${RELEASE}-issuer.${NAMESPACE}.svc:15090/realms/dx/protocol/openid-connect/token`,
      allowInsecureTokenUrl: true,
      audience: 'api',
      secret: { name: 'gateway-oauth' },
    },
  ],
  'gateway.routes': [{ name: 'api', upstream: API_URL.replace('SHOP', SHOP), credential: 'api' }],
  'gateway.certificates.source': 'cert-manager',
  'gateway.certificates.certManager.issuerRef': COMPANY,
  // Its callers' authority is its own.
  'gateway.clientCertificates.secret': CERTIFICATE,
};

/** Two replicas that show, and know the gateway by, what cert-manager put into the Secret `name`. */
const callerOf = (name: string): object[] =>
  gatewayCaller({
    namespace: SHOP,
    name,
    identity: { secret: { secretName: name, defaultMode: 0o440 } },
    env: { IDENTITY: '/identity', CA_FILE: '/identity/ca.crt' },
  });

inCluster('the gateway, with certificates of cert-manager', () => {
  let callers: readonly Pod[] = [];

  useShop(SHOP);
  beforeAll(async () => {
    await startCertManager();
    await provideCompanyIssuer();
    const usages = ['client auth'];
    await apply(
      clientSecret(NAMESPACE, 'first', 'gateway-oauth'),
      certificate(SHOP, 'by-spiffe-id', { uris: [SPIFFE_ID], usages }),
      certificate(SHOP, 'by-dns-name', { dnsNames: [DNS_NAME], usages }),
      certificate(SHOP, 'stranger', { dnsNames: ['stranger.example.com'], usages }),
    );
    for (const name of ['by-spiffe-id', 'by-dns-name', 'stranger']) await readyCertificate(SHOP, name);
    await installChart(VALUES);
  });
  afterAll(async () => {
    // Before its kinds go, which Helm has to know to delete what is of them.
    await installChart();
    await stopCertManager();
  });

  it('serves callers by the SPIFFE id or the DNS name of their certificate, and refuses a stranger', async () => {
    await apply(...callerOf('by-spiffe-id'), ...callerOf('by-dns-name'));
    callers = [...(await readyPods(SHOP, 'by-spiffe-id', 2)), ...(await readyPods(SHOP, 'by-dns-name', 2))];
    await expectNoFailure(callers, 20);
    const { ca, cert, key } = await issued(SHOP, 'stranger');
    const service = `${NAMESPACE}/${GATEWAY}`;
    const { status, headers } = await ask({ service, port: 15_443, path: '/orders', ca, cert, key });
    expect([status, headers['token-sidecar-error']]).toEqual([403, 'caller_not_allowed']);
  });

  it('renewed when it is asked for, fails no request', async () => {
    const before = await issued(NAMESPACE, CERTIFICATE);
    await renew(NAMESPACE, CERTIFICATE);
    expect((await issued(NAMESPACE, CERTIFICATE)).key).not.toBe(before.key);
    await everyReplicaShows('gateway', CERTIFICATE);
    await expectNoFailure(callers, 20);
    expect((await totalOf(callers)).failures).toEqual([]);
  });
});
