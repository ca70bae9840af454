/** The CAs that the API server trusts when it calls our webhooks. */

import type { ApiObject, KubernetesApi } from '../../platform/kubernetes/api.ts';
import { splitPem } from './stored-certificates.ts';

export interface WebhookConfiguration {
  readonly kind: 'mutating' | 'validating';
  readonly name: string;
}

export interface ConfigurationObject extends ApiObject {
  readonly webhooks?: readonly {
    readonly name: string;
    readonly clientConfig?: { readonly caBundle?: string };
  }[];
}

const GROUP = '/apis/admissionregistration.k8s.io/v1';

export function collectionOf({ kind }: WebhookConfiguration): string {
  return `${GROUP}/${kind}webhookconfigurations`;
}

/** The trusted CAs of each webhook in a configuration, PEM. */
export function caBundlesOf({ webhooks = [] }: ConfigurationObject): readonly string[] {
  return webhooks.map(({ clientConfig }) =>
    Buffer.from(clientConfig?.caBundle ?? '', 'base64').toString('utf8'),
  );
}

/**
 * Makes every webhook of the configuration trust these CAs, and no others. Writes nothing if this is so already.
 * @param authorities PEM.
 * @param keep which of the other trusted CAs stay for now, PEM.
 * @throws {KubernetesApiError}
 */
export async function trustAuthorities(
  api: KubernetesApi,
  configuration: WebhookConfiguration,
  authorities: readonly string[],
  keep: (others: readonly string[]) => readonly string[] = () => [],
): Promise<void> {
  const path = `${collectionOf(configuration)}/${configuration.name}`;
  const live = await api.request<ConfigurationObject>('GET', path);
  const { webhooks = [] } = live;
  const found = new Set(caBundlesOf(live).flatMap(splitPem));
  const kept = keep([...found].filter((pem) => !authorities.includes(pem)));
  const caBundle = Buffer.from([...authorities, ...kept].join('')).toString('base64');
  const wrong = webhooks.filter(({ clientConfig }) => clientConfig?.caBundle !== caBundle);
  if (wrong.length === 0) return;
  // Merged by the webhooks' names, so that nobody else's change is undone.
  await api.request('PATCH', path, {
    contentType: 'application/strategic-merge-patch+json',
    body: { webhooks: wrong.map(({ name }) => ({ name, clientConfig: { caBundle } })) },
  });
}
