/** Peers and ports of the NetworkPolicies that more than one component has. */

import { expect, test } from 'vitest';
import { type Manifest, manifests } from './manifests.ts';

const CLOSED = ['networkPolicy.enabled=true'];
const BROKER = ['broker.enabled=true', 'injector.profiles.enabled=true', 'broker.secrets={payments}'];
const ISSUER = ['issuer.enabled=true', 'issuer.clients.secrets={shop}'];
const inNamespace = (value: string, name: string): string =>
  `networkPolicy.${value}[0].namespaceSelector.matchLabels.name=${name}`;
const peer = (name: string): object => ({ namespaceSelector: { matchLabels: { name } } });

async function policyOf(component: string, ...set: readonly string[]): Promise<Manifest> {
  const all = await manifests({ set: [...CLOSED, ...set] });
  return all.find(
    ({ kind, metadata }) =>
      kind === 'NetworkPolicy' && metadata.labels['app.kubernetes.io/component'] === component,
  );
}

test('what scrapes metrics comes to the issuer beside those that read its keys', async () => {
  const adminOf = async (...set: readonly string[]): Promise<unknown> => {
    const { ingress } = (await policyOf('issuer', ...ISSUER, ...set)).spec;
    return ingress.find(({ ports }: Manifest) => ports[0].port === 'admin').from;
  };
  const keys = inNamespace('issuerAdminFrom', 'apis');
  const metrics = inNamespace('metricsFrom', 'monitoring');
  expect(await adminOf(keys, metrics)).toEqual([peer('apis'), peer('monitoring')]);
  expect(await adminOf(keys)).toEqual([peer('apis')]);
  // Who reads keys is not known then, and they are public.
  expect(await adminOf(metrics)).toBeUndefined();
});

test.each([
  ['injector', []],
  ['startup-check', []],
  ['broker', [...BROKER, inNamespace('brokerTo', 'sso'), inNamespace('apiServerTo', 'api')]],
])('the %s comes to an API server and a DNS that listen on other ports', async (component, set) => {
  const ports = ['networkPolicy.apiServerPorts={443,16443}', 'networkPolicy.dnsPorts={1053}'];
  const [api, dns] = (await policyOf(component, ...set, ...ports)).spec.egress;
  expect(api.ports).toEqual([443, 16_443].map((port) => ({ port, protocol: 'TCP' })));
  expect(dns.ports).toEqual(['UDP', 'TCP'].map((protocol) => ({ port: 1053, protocol })));
});
