/** A gateway with callers of both kinds, whose Secrets are there before it. */

import { readFileSync } from 'node:fs';
import { inPki, issue } from '../node/certificates.ts';
import { apply } from '../node/kubectl.ts';
import { GATEWAY_HOST, gatewayCaller } from './gateway-caller.ts';
import { clientSecret, NAMESPACE, RELEASE, type Values } from './release.ts';
import { API_URL } from './workload.ts';

const spiffeId = (shop: string, account: string): string => `spiffe://cluster.local/ns/${shop}/sa/${account}`;

/** Values by which the gateway serves accounts and a certificate of the namespace `shop`. */
export const gatewayValues = (shop: string) =>
  ({
    'gateway.enabled': true,
    'gateway.callers': [
      { name: 'tokens', match: { serviceAccount: `${shop}/by-token` }, allowedRoutes: ['api'] },
      {
        name: 'certificates',
        match: { spiffe: spiffeId(shop, 'by-certificate') },
        allowedCredentials: ['api'],
      },
      { name: 'others', match: { serviceAccount: `${shop}/others` }, allowedRoutes: ['elsewhere'] },
    ],
    'gateway.credentials': [
      {
        name: 'api',
        // The issuer of the release, which is plain HTTP.
        tokenUrl: `http://${RELEASE}-issuer.${NAMESPACE}.svc:15090/realms/dx/protocol/openid-connect/token`,
        allowInsecureTokenUrl: true,
        audience: 'api',
        secret: { name: 'gateway-oauth' },
      },
    ],
    'gateway.routes': [
      {
        name: 'elsewhere',
        match: { pathPrefix: '/elsewhere/' },
        upstream: API_URL.replace('SHOP', shop),
        credential: 'api',
      },
      { name: 'api', upstream: API_URL.replace('SHOP', shop), credential: 'api' },
    ],
    'gateway.certificates.existing.secretName': 'gateway-tls',
    'gateway.clientCertificates.secret': 'gateway-callers',
  }) as const satisfies Values;

export const ofPki = (file: string): string => readFileSync(inPki(file), 'utf8');

function tlsSecret(inNamespace: string, name: string, certificate: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'kubernetes.io/tls',
    metadata: { name, namespace: inNamespace },
    stringData: { 'tls.crt': ofPki(`${certificate}.crt`), 'tls.key': ofPki(`${certificate}.key`) },
  };
}

export const GATEWAY_AUDIENCE = 'token-sidecar-gateway';

/** An app that shows its service account token. */
export function callerByToken(shop: string, env: Readonly<Record<string, string>> = {}): object[] {
  const token = { serviceAccountToken: { audience: GATEWAY_AUDIENCE, path: 'token' } };
  return gatewayCaller({
    namespace: shop,
    name: 'by-token',
    identity: { projected: { sources: [token] } },
    env: { TOKEN_FILE: '/identity/token', ...env },
  });
}

/** An app that shows the certificate of `provideGatewaySecrets`. */
export function callerByCertificate(shop: string): object[] {
  return gatewayCaller({
    namespace: shop,
    name: 'by-certificate',
    identity: { secret: { secretName: 'identity', defaultMode: 0o440 } },
    env: { IDENTITY: '/identity' },
  });
}

/** What these values and callers name. */
export async function provideGatewaySecrets(shop: string): Promise<void> {
  await issue('gateway', '/CN=gateway', `DNS:${GATEWAY_HOST}`);
  await issue('gateway-caller', '/CN=by-certificate', `URI:${spiffeId(shop, 'by-certificate')}`);
  await issue('gateway-stranger', '/CN=stranger', `URI:${spiffeId(shop, 'stranger')}`);
  await apply(
    tlsSecret(NAMESPACE, 'gateway-tls', 'gateway'),
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'gateway-callers', namespace: NAMESPACE },
      stringData: { 'ca.crt': ofPki('ca.crt') },
    },
    clientSecret(NAMESPACE, 'first', 'gateway-oauth'),
    tlsSecret(shop, 'identity', 'gateway-caller'),
  );
}
