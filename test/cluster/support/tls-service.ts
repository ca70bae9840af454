/** A program of the scenarios behind TLS, with a certificate of the cluster's CA. */

import { readFileSync } from 'node:fs';
import { inPki, issue } from '../node/certificates.ts';
import type { Program } from '../node/images.ts';
import { apply, kubectl } from '../node/kubectl.ts';
import { container, SECURE_POD } from './workload.ts';

export interface TlsService {
  readonly namespace: string;
  /** Of the Deployment and the Service. */
  readonly name: string;
  readonly program: Program;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** A fixed address of the Service, by which the certificate goes; otherwise by the Service's name. */
  readonly address?: string;
}

/** Serves `program`, which listens on 8443 and reads /tls, on port 443 of a Service, and waits until it does. */
export async function provideTlsService(service: TlsService): Promise<void> {
  const { namespace, name, program, args = [], env = {}, address } = service;
  const certificate = `${namespace}-${name}`;
  const knownAs = address === undefined ? `DNS:${name}.${namespace}.svc` : `IP:${address}`;
  await issue(certificate, `/CN=${name}`, knownAs);
  const read = (file: string): string => readFileSync(inPki(file)).toString('base64');
  const labels = { app: name };
  const { command, ...rest } = container(program, env) as { command: readonly string[] };
  await apply(
    {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/tls',
      metadata: { name: `${name}-tls`, namespace },
      data: { 'tls.crt': read(`${certificate}.crt`), 'tls.key': read(`${certificate}.key`) },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace },
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            terminationGracePeriodSeconds: 2,
            securityContext: { ...SECURE_POD, fsGroup: 10_001 },
            containers: [
              {
                ...rest,
                command: [...command, ...args],
                readinessProbe: { tcpSocket: { port: 8443 }, periodSeconds: 1 },
                volumeMounts: [{ name: 'tls', mountPath: '/tls' }],
              },
            ],
            volumes: [{ name: 'tls', secret: { secretName: `${name}-tls`, defaultMode: 0o440 } }],
          },
        },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace },
      spec: {
        ...(address === undefined ? {} : { clusterIP: address }),
        selector: labels,
        ports: [{ port: 443, targetPort: 8443 }],
      },
    },
  );
  await kubectl('-n', namespace, 'rollout', 'status', `deployment/${name}`, '--timeout=120s');
}
