/** An app without a sidecar, which calls through the gateway of the release. */

import { NAMESPACE, RELEASE } from './release.ts';
import { container, SECURE_POD } from './workload.ts';

export const GATEWAY = `${RELEASE}-gateway`;
export const GATEWAY_HOST = `${GATEWAY}.${NAMESPACE}.svc`;

export interface GatewayCaller {
  readonly namespace: string;
  /** Of its Deployment, its service account and its label `app`. */
  readonly name: string;
  /** What it reads at /identity, to show the gateway who it is. */
  readonly identity: object;
  /** It knows the gateway by the cluster's CA unless CA_FILE says otherwise. */
  readonly env: Readonly<Record<string, string>>;
}

/** Two replicas of it. */
export function gatewayCaller({ namespace, name, identity, env }: GatewayCaller): object[] {
  const labels = { app: name };
  const authorities = { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } };
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace },
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            serviceAccountName: name,
            automountServiceAccountToken: false,
            terminationGracePeriodSeconds: 2,
            securityContext: { ...SECURE_POD, fsGroup: 10_001 },
            containers: [
              {
                ...container('caller', {
                  URL: `https://${GATEWAY_HOST}:15443/orders`,
                  CA_FILE: '/authorities/ca.crt',
                  ...env,
                }),
                volumeMounts: [
                  { name: 'authorities', mountPath: '/authorities' },
                  { name: 'identity', mountPath: '/identity' },
                ],
              },
            ],
            volumes: [
              { name: 'authorities', ...authorities },
              { name: 'identity', ...identity },
            ],
          },
        },
      },
    },
  ];
}
