/** The cluster's own certificates, made by openssl, and a kubeconfig for each of its programs. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { API_SERVER, everyFamilyOn, inEveryFamily } from './addresses.ts';
import { type Node, onNode } from './nodes.ts';
import { CONFIGURATION, PKI } from './places.ts';
import { run } from './run.ts';

const openssl = (...args: string[]): Promise<string> => run('openssl', args);

/** Who asks the API server, and as whom (`/O=group/CN=user`). */
const CLIENTS: Readonly<Record<string, string>> = {
  admin: '/O=system:masters/CN=admin',
  'controller-manager': '/CN=system:kube-controller-manager',
  scheduler: '/CN=system:kube-scheduler',
  proxy: '/CN=system:kube-proxy',
  coredns: '/CN=coredns',
};

/** Names by which pods and people call the API server. */
const API_SERVER_NAMES = [
  ...[
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    'kubernetes.default.svc.cluster.local',
  ].map((name) => `DNS:${name}`),
  ...[...inEveryFamily('apiService'), ...inEveryFamily('node'), '127.0.0.1'].map(
    (address) => `IP:${address}`,
  ),
].join(',');

export const inPki = (file: string): string => join(PKI, file);
export const kubeconfigOf = (client: string): string => join(CONFIGURATION, `${client}.conf`);

export async function makeCertificates(): Promise<void> {
  await openssl(
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'],
    ...['-keyout', inPki('ca.key'), '-out', inPki('ca.crt'), '-days', '30', '-subj', '/CN=cluster'],
  );
  await openssl('ecparam', '-genkey', '-name', 'prime256v1', '-noout', '-out', inPki('accounts.key'));
  await openssl('ec', '-in', inPki('accounts.key'), '-pubout', '-out', inPki('accounts.pub'));
  await issue('apiserver', '/CN=kube-apiserver', API_SERVER_NAMES);
  await issue('apiserver-to-kubelet', '/O=system:masters/CN=kube-apiserver-kubelet-client');
  await issue('front-proxy', '/CN=front-proxy');
  for (const [client, subject] of Object.entries(CLIENTS)) {
    await makeClient(client, subject);
  }
}

/** What a node's kubelet shows the API server, and the API server is shown when it asks the kubelet. */
export function makeKubeletCertificate(node: Node): Promise<void> {
  const addresses = everyFamilyOn(node, 'node').map((address) => `IP:${address}`);
  const names = [`DNS:${node.name}`, ...addresses].join(',');
  return makeClient(onNode(node, 'kubelet'), `/O=system:nodes/CN=system:node:${node.name}`, names);
}

/** A certificate for a program that asks the API server as `subject`, and its kubeconfig (`kubeconfigOf`). */
export async function makeClient(client: string, subject: string, alternativeNames?: string): Promise<void> {
  await issue(client, subject, alternativeNames);
  writeFileSync(kubeconfigOf(client), kubeconfig(client));
}

/** A certificate of the cluster's CA, which pods know by the ConfigMap kube-root-ca.crt, in `NAME.crt` and `NAME.key`. */
export async function issue(name: string, subject: string, alternativeNames?: string): Promise<void> {
  const extensions = inPki(`${name}.ext`);
  writeFileSync(
    extensions,
    `extendedKeyUsage=serverAuth,clientAuth\n${alternativeNames === undefined ? '' : `subjectAltName=${alternativeNames}\n`}`,
  );
  await openssl(
    ...['req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', subject],
    ...['-keyout', inPki(`${name}.key`), '-out', inPki(`${name}.csr`)],
  );
  await openssl(
    ...['x509', '-req', '-in', inPki(`${name}.csr`), '-CA', inPki('ca.crt'), '-CAkey', inPki('ca.key')],
    ...['-CAcreateserial', '-days', '30', '-out', inPki(`${name}.crt`), '-extfile', extensions],
  );
}

function kubeconfig(client: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: API_SERVER, 'certificate-authority': inPki('ca.crt') } }],
    users: [
      {
        name: 'u',
        user: { 'client-certificate': inPki(`${client}.crt`), 'client-key': inPki(`${client}.key`) },
      },
    ],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'c',
  });
}
