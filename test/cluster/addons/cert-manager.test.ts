import { afterAll, beforeAll, expect, it } from 'vitest';
import { apply, get, helm, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { installChart, NAMESPACE, RELEASE } from '../support/release.ts';
import { hasPolicies, inCluster, useShop } from '../support/scenario.ts';
import { makePodsDuring } from '../support/unscheduled-pods.ts';
import { askingForSidecar, callingTemplate, callsOn, type Pod, readyPods } from '../support/workload.ts';
import { CERT_MANAGER_NAMESPACE, startCertManager, stopCertManager } from './cert-manager.ts';
import {
  COMPANY,
  everyReplicaShows,
  type Issued,
  issued,
  provideCompanyIssuer,
  readyCertificate,
  renew,
} from './certificate.ts';

const SHOP = 'cert-manager-shop';
const CERTIFICATE = `${RELEASE}-injector-cert-manager`;
const AUTHORITY = `${RELEASE}-injector-ca`;
/** Without it a pod that the injector missed would be refused, and not be seen. */
const UNENFORCED = { 'injector.webhook.enforce': false };
const SELF_MANAGED = { 'injector.certificates.selfManaged.propagation': '10s' };
const HELM = { 'injector.certificates.source': 'helm' };
const BY_CERT_MANAGER = { 'injector.certificates.source': 'cert-manager' };
const BY_COMPANY = { ...BY_CERT_MANAGER, 'injector.certificates.certManager.issuerRef': COMPANY };

interface Webhooks {
  readonly items: readonly {
    readonly metadata: { readonly name: string };
    readonly webhooks: readonly {
      readonly name: string;
      readonly clientConfig: { readonly caBundle: string };
    }[];
  }[];
}

const serving = (): Promise<Issued> => issued(NAMESPACE, CERTIFICATE);

/** What the API server trusts, for each of the release's webhooks, in PEM; once where it is the same. */
async function bundles(): Promise<readonly string[]> {
  const { items } = await get<Webhooks>('mutatingwebhookconfigurations');
  const ours = items.filter(({ metadata }) => metadata.name.includes(RELEASE));
  const bundlesOf = ours.flatMap(({ webhooks }) => webhooks.map(({ clientConfig }) => clientConfig.caBundle));
  return [...new Set(bundlesOf)].map((bundle) => Buffer.from(bundle, 'base64').toString());
}

/** Waits until cert-manager has made it again. */
async function deleteSecret(namespace: string, name: string): Promise<void> {
  const { key } = await issued(namespace, name);
  await kubectl('-n', namespace, 'delete', 'secret', name);
  await eventually('another certificate', 60, async () => (await issued(namespace, name)).key !== key);
}

inCluster('the injector, with a certificate of cert-manager', () => {
  useShop(SHOP);
  beforeAll(startCertManager);
  afterAll(async () => {
    // Before its kinds go, which Helm has to know to delete what is of them.
    await installChart();
    await stopCertManager();
  });

  /** With their sidecar, at once. */
  const losesNoPod = async (app: string, operation: () => Promise<unknown>): Promise<void> => {
    const { pods, bare, refusals } = await makePodsDuring(SHOP, app, operation);
    expect({ bare, refusals }).toEqual({ bare: [], refusals: [] });
    expect(pods).toBeGreaterThanOrEqual(20);
  };

  /**
   * cainjector writes one CA over all others, before every replica has a certificate of it. Until then a pod that asks for
   * its sidecar is refused, with the reason.
   */
  const letsNonePass = async (app: string, operation: () => Promise<unknown>): Promise<void> => {
    const { pods, bare, refusals } = await makePodsDuring(SHOP, app, operation);
    expect(bare).toEqual([]);
    for (const refusal of refusals) expect(refusal).toMatch(/asks for the token sidecar .* did not get it/s);
    expect(pods).toBeGreaterThanOrEqual(20);
  };

  it('installed so, is trusted by the CA that cainjector writes, and gives pods their sidecar', async () => {
    await helm('uninstall', RELEASE, '--namespace', NAMESPACE, '--wait');
    await installChart(BY_CERT_MANAGER);
    await readyCertificate(NAMESPACE, CERTIFICATE);
    expect(await bundles()).toEqual([(await serving()).ca]);
    await apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'app', namespace: SHOP },
      spec: {
        selector: { matchLabels: { app: 'app' } },
        template: callingTemplate('app', askingForSidecar(SHOP)),
      },
    });
    const [pod] = await readyPods(SHOP, 'app', 1);
    expect(await callsOn(pod as Pod, 20)).toMatchObject({ failed: 0 });
  });

  it('renewed when it is asked for, or because its Secret was deleted, loses no pod', async () => {
    await installChart({ ...UNENFORCED, ...BY_CERT_MANAGER });
    for (const renewal of [renew, deleteSecret]) {
      const { cert } = await serving();
      await losesNoPod(renewal.name.toLowerCase(), async () => {
        await renewal(NAMESPACE, CERTIFICATE);
        await everyReplicaShows('injector', CERTIFICATE);
      });
      expect((await serving()).cert).not.toBe(cert);
    }
  });

  it('renewed after its CA was, loses no pod', async () => {
    await installChart({ ...UNENFORCED, ...BY_CERT_MANAGER });
    const before = await issued(NAMESPACE, AUTHORITY);
    await losesNoPod('authority', async () => {
      await renew(NAMESPACE, AUTHORITY);
      await renew(NAMESPACE, CERTIFICATE);
      await everyReplicaShows('injector', CERTIFICATE);
    });
    const { cert } = await issued(NAMESPACE, AUTHORITY);
    expect(cert).not.toBe(before.cert);
    expect(await bundles()).toEqual([cert]);
  });

  it.runIf(hasPolicies)(
    'changed to an issuer of the cluster, has pods wait for their sidecar until its CA is that of every replica',
    async () => {
      await provideCompanyIssuer();
      await installChart(BY_CERT_MANAGER);
      const { ca } = await issued(CERT_MANAGER_NAMESPACE, 'company-ca');
      await letsNonePass('issuer', async () => {
        await installChart(BY_COMPANY);
        await eventually('its CA is trusted', 60, async () => (await bundles()).includes(ca));
        await everyReplicaShows('injector', CERTIFICATE);
      });
    },
  );

  it.runIf(hasPolicies)(
    "from the injector's own certificate, has pods wait for their sidecar; back to it, loses none",
    async () => {
      await installChart(SELF_MANAGED);
      await letsNonePass('from-own', () => installChart(BY_CERT_MANAGER));
      await installChart({ ...UNENFORCED, ...BY_CERT_MANAGER });
      await losesNoPod('to-own', () => installChart({ ...UNENFORCED, ...SELF_MANAGED }));
    },
  );

  it.runIf(hasPolicies)("from Helm's, has pods wait for their sidecar; back to it, loses none", async () => {
    await installChart(HELM);
    await letsNonePass('from-helm', () => installChart(BY_CERT_MANAGER));
    await installChart({ ...UNENFORCED, ...BY_CERT_MANAGER });
    await losesNoPod('to-helm', () => installChart({ ...UNENFORCED, ...HELM }));
  });
});
