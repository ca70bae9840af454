import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, expect, it } from 'vitest';
import { inPki, issue } from '../node/certificates.ts';
import { apply, get, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { installChart, NAMESPACE, RELEASE } from '../support/release.ts';
import { inCluster, useShop } from '../support/scenario.ts';
import { makePodsDuring } from '../support/unscheduled-pods.ts';
import { metricOf, type Pod } from '../support/workload.ts';

const SHOP = 'certificates';
const SECRET = `${RELEASE}-injector-self-managed`;
/** Without it a pod that the injector missed would be refused, and not be seen. */
const UNENFORCED = { 'injector.webhook.enforce': false };
const HELM = { ...UNENFORCED, 'injector.certificates.source': 'helm' };
const SELF_MANAGED = {
  ...UNENFORCED,
  'injector.certificates.source': 'self-managed',
  'injector.certificates.selfManaged.propagation': '10s',
};

const EXISTING = 'injector-tls';

interface Secret {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly type: string;
  readonly data: Readonly<Record<string, string>>;
}

const INJECTOR_PODS = 'app.kubernetes.io/component=injector';
const EXPIRY = /^token_sidecar_injector_certificate_expiry_timestamp_seconds/;

const stored = (): Promise<Secret> => get<Secret>('secret', SECRET, '-n', NAMESPACE);

inCluster('an operation on the certificate, while pods are made continually', () => {
  useShop(SHOP);
  afterAll(() => installChart());

  async function losesNoPod(app: string, operation: () => Promise<unknown>): Promise<void> {
    const { pods, bare, refusals } = await makePodsDuring(SHOP, app, operation);
    expect({ bare, refusals }).toEqual({ bare: [], refusals: [] });
    expect(pods).toBeGreaterThanOrEqual(20);
  }

  const changed = (from: string): Promise<Secret> =>
    eventually('another certificate', 120, async () => {
      const secret = await stored();
      return secret.data['tls.crt'] === from ? undefined : secret;
    });

  it('made anew by Helm', async () => {
    await installChart(HELM);
    await losesNoPod('regenerated', () =>
      installChart({ ...HELM, 'injector.certificates.helm.regenerate': true }),
    );
  });

  it("from Helm's to the injector's own, and back", async () => {
    await installChart(HELM);
    await losesNoPod('to-own', () => installChart(SELF_MANAGED));
    await losesNoPod('to-helm', () => installChart(HELM));
  });

  it("from Helm's to one that is there already, and back", async () => {
    const host = `${RELEASE}-injector.${NAMESPACE}.svc`;
    await issue(EXISTING, '/CN=injector', `DNS:${host}`);
    const read = (file: string): Buffer => readFileSync(inPki(file));
    await apply({
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/tls',
      metadata: { name: EXISTING, namespace: NAMESPACE },
      data: {
        'tls.crt': read(`${EXISTING}.crt`).toString('base64'),
        'tls.key': read(`${EXISTING}.key`).toString('base64'),
      },
    });
    await installChart(HELM);
    await losesNoPod('to-existing', () =>
      installChart({
        ...UNENFORCED,
        'injector.certificates.source': 'existing',
        'injector.certificates.existing.secretName': EXISTING,
        'injector.certificates.existing.caBundle': read('ca.crt').toString('utf8'),
      }),
    );
    await losesNoPod('from-existing', () => installChart(HELM));
    // An uninstall leaves it, as nobody but its owner removes it.
    await kubectl('-n', NAMESPACE, 'delete', 'secret', EXISTING);
  });

  it('a rotation that is asked for', async () => {
    await installChart(SELF_MANAGED);
    const { data } = await stored();
    await losesNoPod('rotated', async () => {
      await kubectl('-n', NAMESPACE, 'annotate', 'secret', SECRET, 'token-sidecar.dev/rotate=now');
      await changed(data['tls.crt'] ?? '');
    });
  });

  it('a Secret that is deleted, and one that is restored from a backup', async () => {
    await installChart(SELF_MANAGED);
    const { metadata, type, data } = await stored();
    const backup = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: metadata.name, namespace: metadata.namespace },
      type,
      data,
    };
    await losesNoPod('deleted', async () => {
      await kubectl('-n', NAMESPACE, 'delete', 'secret', SECRET);
      await installChart(SELF_MANAGED);
      await eventually('the certificate again', 120, async () => {
        const again = await stored();
        return again.data?.['tls.crt'] === data['tls.crt'] ? again : undefined;
      });
    });
    await losesNoPod('restored', async () => {
      await kubectl('-n', NAMESPACE, 'annotate', 'secret', SECRET, 'token-sidecar.dev/rotate=now');
      await changed(data['tls.crt'] ?? '');
      await apply(backup);
      const pem = Buffer.from(data['tls.crt'] ?? '', 'base64');
      const endsAt = new X509Certificate(pem).validToDate.getTime() / 1000;
      await eventually('every replica shows it', 120, async () => {
        const { items } = await get<{ items: Pod[] }>('pods', '-n', NAMESPACE, '-l', INJECTOR_PODS);
        const shown = await Promise.all(items.map((pod) => metricOf(pod, EXPIRY)));
        return shown.every((at) => at === endsAt) ? shown : undefined;
      });
    });
  });
});
