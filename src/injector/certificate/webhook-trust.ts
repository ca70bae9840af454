/** The CAs that the API server trusts when it calls our webhooks. */

import type { ApiObject, KubernetesApi } from '../kubernetes/api.ts';

export interface WebhookConfiguration {
  readonly kind: 'mutating' | 'validating';
  readonly name: string;
}

interface ConfigurationObject extends ApiObject {
  readonly webhooks?: readonly {
    readonly name: string;
    readonly clientConfig?: { readonly caBundle?: string };
  }[];
}

const GROUP = '/apis/admissionregistration.k8s.io/v1';

export function collectionOf({ kind }: WebhookConfiguration): string {
  return `${GROUP}/${kind}webhookconfigurations`;
}

/**
 * Makes every webhook of the configuration trust these CAs, and no others. Writes nothing when it is so already.
 * @param authorities PEM.
 * @throws {KubernetesApiError}
 */
export async function trustAuthorities(
  api: KubernetesApi,
  configuration: WebhookConfiguration,
  authorities: readonly string[],
): Promise<void> {
  const path = `${collectionOf(configuration)}/${configuration.name}`;
  const caBundle = Buffer.from(authorities.join('')).toString('base64');
  const { webhooks = [] } = await api.request<ConfigurationObject>('GET', path);
  const wrong = webhooks.filter(({ clientConfig }) => clientConfig?.caBundle !== caBundle);
  if (wrong.length === 0) return;
  // Merged by the webhooks' names, so that nobody else's change is undone.
  await api.request('PATCH', path, {
    contentType: 'application/strategic-merge-patch+json',
    body: { webhooks: wrong.map(({ name }) => ({ name, clientConfig: { caBundle } })) },
  });
}
