/** Certificates of cert-manager, as an operator makes, watches and renews them. */

import { X509Certificate } from 'node:crypto';
import { apply, get, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { NAMESPACE } from '../support/release.ts';
import { metricOf, type Pod } from '../support/workload.ts';
import { CERT_MANAGER_NAMESPACE } from './cert-manager.ts';

interface Certificate {
  readonly status?: {
    readonly revision?: number;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

/** A ClusterIssuer that signs by a CA of its own, as a company has one. */
export const COMPANY = { group: 'cert-manager.io', kind: 'ClusterIssuer', name: 'company' };

const manifest = (kind: string, name: string, spec: object, namespace?: string): object => ({
  apiVersion: 'cert-manager.io/v1',
  kind,
  metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
  spec,
});

export function certificate(namespace: string, name: string, spec: object): object {
  return manifest('Certificate', name, { secretName: name, issuerRef: COMPANY, ...spec }, namespace);
}

/** Makes the ClusterIssuer `COMPANY`. */
export async function provideCompanyIssuer(): Promise<void> {
  const issuerRef = { ...COMPANY, name: 'self-signed' };
  await apply(
    manifest('ClusterIssuer', 'self-signed', { selfSigned: {} }),
    certificate(CERT_MANAGER_NAMESPACE, 'company-ca', { isCA: true, commonName: 'company', issuerRef }),
    manifest('ClusterIssuer', COMPANY.name, { ca: { secretName: 'company-ca' } }),
  );
  await readyCertificate(CERT_MANAGER_NAMESPACE, 'company-ca');
}

/** As `kubectl get certificate` shows it in its column READY, with a certificate issued `revision` times. */
export function readyCertificate(namespace: string, name: string, revision = 1): Promise<Certificate> {
  return eventually(`revision ${revision} of ${name} is ready`, 60, async () => {
    const found = await get<Certificate>('certificate', name, '-n', namespace);
    const { conditions = [], revision: is = 0 } = found.status ?? {};
    const has = (condition: string): boolean =>
      conditions.some(({ type, status }) => type === condition && status === 'True');
    return has('Ready') && !has('Issuing') && is >= revision && found;
  });
}

/** What `cmctl renew` does, and waits for the new one. */
export async function renew(namespace: string, name: string): Promise<void> {
  const { status } = await readyCertificate(namespace, name);
  const condition = {
    ...{ type: 'Issuing', status: 'True', reason: 'ManuallyTriggered', message: 'asked for' },
    lastTransitionTime: new Date().toISOString().replace(/\.\d+/, ''),
  };
  await kubectl(
    ...(['-n', namespace, 'patch', 'certificate', name, '--subresource=status', '--type=json'] as const),
    ...['-p', JSON.stringify([{ op: 'add', path: '/status/conditions/-', value: condition }])],
  );
  await readyCertificate(namespace, name, (status?.revision ?? 0) + 1);
}

/** What a Secret of a Certificate holds, in PEM. */
export interface Issued {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export async function issued(namespace: string, secretName: string): Promise<Issued> {
  const { data } = await get<{ data: Readonly<Record<string, string>> }>(
    ...(['secret', secretName, '-n', namespace] as const),
  );
  const read = (file: string): string => Buffer.from(data[file] ?? '', 'base64').toString();
  return { ca: read('ca.crt'), cert: read('tls.crt'), key: read('tls.key') };
}

/** Waits until every replica of a component shows the certificate that its Secret holds. */
export async function everyReplicaShows(
  component: 'injector' | 'broker' | 'gateway',
  secretName: string,
): Promise<void> {
  const expiry = new RegExp(`^token_sidecar_${component}_certificate_expiry_timestamp_seconds`);
  await eventually('every replica shows the certificate', 120, async () => {
    const { cert } = await issued(NAMESPACE, secretName);
    const endsAt = new X509Certificate(cert).validToDate.getTime() / 1000;
    const { items } = await get<{ items: Pod[] }>(
      ...(['pods', '-n', NAMESPACE, '-l', `app.kubernetes.io/component=${component}`] as const),
    );
    const shown = await Promise.all(items.map((pod) => metricOf(pod, expiry)));
    return shown.length > 1 && shown.every((at) => at === endsAt);
  });
}
