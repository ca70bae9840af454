/** The chart, installed as an operator would, with its own issuer for a provider. */

import { join } from 'node:path';
import { ROOT } from '../../image/container-tools.ts';
import { FAMILIES } from '../node/addresses.ts';
import { apply, get, helm, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';

export const RELEASE = 'token-sidecar';
export const NAMESPACE = 'token-sidecar';
export const CLIENT_SECRET = 'shop-oauth';
export const CLIENT_ID = 'shop';

/** What the issuer knows of its clients. */
const ISSUER_CLIENTS = 'issuer-clients';

/** The issuer, as pods reach it. */
export const ISSUER = `http://${RELEASE}-issuer.${NAMESPACE}.svc:15090`;
export const JWKS = `http://${RELEASE}-issuer.${NAMESPACE}.svc:15091/jwks`;
export const TOKEN_LIFETIME_SECONDS = 30;

const CHART = join(ROOT, 'charts/token-sidecar');

/** Settings that every scenario starts from, by `--set-json`. */
const VALUES: Readonly<Record<string, unknown>> = {
  // Where pods have no IPv4, the chart has to be told.
  ...(FAMILIES.includes('IPv4') ? {} : { bindAddress: '[::]' }),
  'sidecar.authUrl': ISSUER,
  'sidecar.allowInsecureTokenUrl': true,
  'issuer.enabled': true,
  'issuer.tokenLifetime': `${TOKEN_LIFETIME_SECONDS}s`,
  'issuer.clients.existingSecret': ISSUER_CLIENTS,
  // The Job after each of some 80 upgrades would take five minutes; the scenario of the release has it.
  ...checkedAfter('post-install'),
};

export type Values = Readonly<Record<string, unknown>>;

/** The Job that asks whether the webhook answers runs after these of Helm's operations. */
export function checkedAfter(...hooks: readonly ('post-install' | 'post-upgrade')[]): Values {
  return { 'injector.startupCheck.jobAnnotations': { 'helm.sh/hook': [...hooks, 'test'].join(',') } };
}

/** `helm upgrade --install --wait`, with `values` by their dotted names. */
export async function installChart(values: Values = {}, ...flags: readonly string[]): Promise<void> {
  const set = Object.entries({ ...VALUES, ...values }).flatMap(([name, value]) => [
    '--set-json',
    `${name}=${JSON.stringify(value)}`,
  ]);
  const target = [RELEASE, CHART, '--namespace', NAMESPACE];
  await helm('upgrade', '--install', ...target, '--wait', '--timeout', '150s', ...set, ...flags);
}

/** The same, and then no replica of the injector answers any more that has the values from before. */
export async function replaceInjector(values: Values = {}): Promise<void> {
  await installChart(values);
  await eventually('the replicas from before are gone', 120, async () => {
    const { items } = await get<{ items: readonly { metadata: { deletionTimestamp?: string } }[] }>(
      'pods',
      '-n',
      NAMESPACE,
      '-l',
      'app.kubernetes.io/component=injector',
    );
    return items.every(({ metadata }) => metadata.deletionTimestamp === undefined) || undefined;
  });
}

/** The release's namespace, which enforces the restricted Pod Security Standard, and the client that the issuer knows. */
export async function makeReleaseNamespace(secret: string): Promise<void> {
  await apply(namespace(NAMESPACE), issuerClients(secret));
}

/** The issuer takes `secret` of its one client, and `second` beside it while it is being changed. */
export function issuerClients(secret: string, second?: string): object {
  const client = {
    clientId: CLIENT_ID,
    clientSecret: secret,
    ...(second === undefined ? {} : { secondClientSecret: second }),
    audience: ['api', 'kubernetes'],
  };
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: ISSUER_CLIENTS, namespace: NAMESPACE },
    stringData: { 'clients.yaml': JSON.stringify({ clients: [client] }) },
  };
}

/** A release as every scenario but those of installing wants it: there, and as the chart makes it by itself. */
export async function provideRelease(): Promise<void> {
  await makeReleaseNamespace('first');
  await installChart();
}

export function namespace(name: string, labels: Readonly<Record<string, string>> = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, labels: { 'pod-security.kubernetes.io/enforce': 'restricted', ...labels } },
  };
}

export function clientSecret(inNamespace: string, secret: string, name = CLIENT_SECRET): object {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: inNamespace },
    stringData: { client_id: CLIENT_ID, client_secret: secret },
  };
}

/** Gone with all that is in it. */
export async function deleteNamespace(name: string): Promise<void> {
  await kubectl('delete', 'namespace', name, '--ignore-not-found', '--wait=true', '--timeout=120s');
}
