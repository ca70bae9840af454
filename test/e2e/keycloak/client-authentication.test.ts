import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { calculateJwkThumbprint, exportJWK, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { SecretValues } from '../../../src/platform/mounted/secret-layout.ts';
import { KEYCLOAK } from '../providers.ts';
import { describeProvider } from '../support/describe-provider.ts';
import { runSidecar } from '../support/sidecar.ts';
import { trafficUntilNewToken } from '../support/traffic.ts';
import { startUpstream, verifyByKeys } from '../support/upstream.ts';
import { dpopTests } from './dpop.ts';
import { type Keycloak, startKeycloak, type Transport } from './keycloak.ts';
import { tokenExchangeTests } from './token-exchange.ts';

const TRANSPORTS: readonly Transport[] = ['http', 'https'];

describeProvider(KEYCLOAK, () => {
  let keycloak: Keycloak;
  beforeAll(async () => {
    keycloak = await startKeycloak();
  });
  afterAll(() => keycloak?.close());

  /** A sidecar in front of an upstream that verifies against the realm's keys. */
  async function start(
    transport: Transport,
    credential: Readonly<Record<string, unknown>>,
    files: SecretValues,
  ) {
    const upstream = await startUpstream(verifyByKeys(await keycloak.keys(), keycloak.issuer(transport)));
    return await runSidecar({
      credential: { ...keycloak.credential(transport), ...credential },
      files,
      upstream,
    });
  }

  describe.each(TRANSPORTS)('over %s', (transport) => {
    it.each([
      ['client_secret_basic', 'shop', 'shop-secret'],
      ['client_secret_post', 'shop', 'shop-secret'],
      ['client_secret_basic', 'shop+special', 'p+w %41:/=&?#"\\ äöü €'],
      ['client_secret_post', 'shop+special', 'p+w %41:/=&?#"\\ äöü €'],
    ])('%s: %s', async (clientAuth, client_id, client_secret) => {
      const sidecar = await start(transport, { clientAuth }, { client_id, client_secret });
      const { status, body } = await sidecar.request();
      expect(body).toMatchObject({ claims: { azp: client_id } });
      expect(status).toBe(200);
    });

    it('client_secret_basic, raw, is what Keycloak does not understand of such a secret', async () => {
      const credential = { clientAuth: 'client_secret_basic', basicEncoding: 'raw' };
      const files = { client_id: 'shop+special', client_secret: 'p+w %41:/=&?#"\\ äöü €' };
      const sidecar = await start(transport, credential, files);
      const { status, error } = await sidecar.request();
      expect({ status, error }).toEqual({ status: 503, error: 'token_unavailable' });
    });
  });

  // Beside the others because a Keycloak takes long to start.
  tokenExchangeTests(() => keycloak);
  dpopTests(() => keycloak);

  describe('private_key_jwt', () => {
    const pem = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString();
    const jwk = (key: KeyObject): string => JSON.stringify({ ...key.export({ format: 'jwk' }), kid: 'own' });
    const keys = {
      ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
      RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
      EdDSA: () => generateKeyPairSync('ed25519'),
    };

    /** @param kid as the provider knows the key; none lets the thumbprint stand. */
    async function register(clientId: string, alg: keyof typeof keys, publicKey: KeyObject, kid?: string) {
      const own = await exportJWK(publicKey);
      const jwks = { keys: [{ ...own, kid: kid ?? (await calculateJwkThumbprint(own)), alg, use: 'sig' }] };
      return await keycloak.addClient({
        clientId,
        clientAuthenticatorType: 'client-jwt',
        attributes: {
          'use.jwks.string': 'true',
          'jwks.string': JSON.stringify(jwks),
          'token.endpoint.auth.signing.alg': alg,
        },
      });
    }

    it.each(Object.keys(keys) as (keyof typeof keys)[])('%s, from a PEM', async (alg) => {
      const { privateKey, publicKey } = keys[alg]();
      const clientId = `pem-${alg}`;
      await register(clientId, alg, publicKey);
      const sidecar = await start(
        'https',
        { clientAuth: 'private_key_jwt' },
        { client_id: clientId, private_key: pem(privateKey) },
      );
      expect((await sidecar.request()).body).toMatchObject({ claims: { azp: clientId } });
    });

    it('from a JWK with its kid, the issuer as audience', async () => {
      const { privateKey, publicKey } = keys.ES256();
      await register('jwk', 'ES256', publicKey, 'own');
      const sidecar = await start(
        'http',
        {
          clientId: 'jwk',
          clientAuth: 'private_key_jwt',
          assertion: { keyFile: 'key.jwk', audience: keycloak.issuer('http') },
        },
        { 'key.jwk': jwk(privateKey) },
      );
      expect((await sidecar.request()).body).toMatchObject({ claims: { azp: 'jwk' } });
    });

    it('another key in the Secret is used at once', async () => {
      const [one, two] = [keys.ES256(), keys.ES256()];
      const id = await register('rotating-key', 'ES256', one.publicKey);
      const credential = { clientId: 'rotating-key', clientAuth: 'private_key_jwt' };
      const sidecar = await start('http', credential, { private_key: pem(one.privateKey) });
      const before = await sidecar.request();
      const own = await exportJWK(two.publicKey);
      const jwks = { keys: [{ ...own, kid: await calculateJwkThumbprint(own), alg: 'ES256', use: 'sig' }] };
      const client = (await keycloak.admin('GET', `/clients/${id}`)) as { attributes: object };
      await keycloak.admin('PUT', `/clients/${id}`, {
        ...client,
        attributes: { ...client.attributes, 'jwks.string': JSON.stringify(jwks) },
      });
      await sidecar.remount({ private_key: pem(two.privateKey) });
      const answers = await trafficUntilNewToken(sidecar, before);
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
      expect(sidecar.grants()).toEqual(['startup success', 'rotation success']);
    });
  });

  describe('tls_client_auth', () => {
    const addClient = (clientId: string): Promise<string> =>
      keycloak.addClient({
        clientId,
        clientAuthenticatorType: 'client-x509',
        attributes: { 'x509.subjectdn': `CN=${clientId}` },
      });
    const files = ({ cert, key }: { cert: string; key: string }) => ({ 'tls.crt': cert, 'tls.key': key });

    it('the certificate is who the client is; a renewed one is used at once', async () => {
      await addClient('shop-tls');
      const sidecar = await start(
        'https',
        { clientId: 'shop-tls', clientAuth: 'tls_client_auth' },
        files(keycloak.authority.issue('shop-tls')),
      );
      const before = await sidecar.request();
      expect(before.body).toMatchObject({ claims: { azp: 'shop-tls' } });
      await sidecar.remount(files(keycloak.authority.issue('shop-tls')));
      const answers = await trafficUntilNewToken(sidecar, before);
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
      expect(sidecar.grants()).toEqual(['startup success', 'rotation success']);
    });

    it("somebody else's certificate is refused", async () => {
      await addClient('shop-tls-other');
      const sidecar = await start(
        'https',
        { clientId: 'shop-tls-other', clientAuth: 'tls_client_auth' },
        files(keycloak.authority.issue('mallory')),
      );
      expect(await sidecar.request()).toMatchObject({ status: 503, error: 'token_unavailable' });
      expect(sidecar.snapshot().lastFailure).toMatchObject({
        result: 'rejected',
        detail: 'status 401 invalid_client: Invalid client or Invalid client credentials',
      });
    });
  });

  describe('kubernetes_jwt', () => {
    const SUBJECT = 'system:serviceaccount:shop:default';

    /** A cluster's issuer as the provider sees it: discovery, public keys, and tokens as the kubelet mounts them. */
    async function startCluster() {
      const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
      const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid: 'cluster', alg: 'RS256', use: 'sig' }] };
      const server = createServer((request, response) => {
        const isDiscovery = request.url === '/.well-known/openid-configuration';
        const body = isDiscovery ? { issuer, jwks_uri: `${issuer}/openid/v1/jwks` } : jwks;
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      onTestFinished(() => {
        server.closeAllConnections();
        server.close();
      });
      return {
        issuer,
        token: (audience: string, lifetimeSeconds: number) =>
          new SignJWT({ 'kubernetes.io': { namespace: 'shop', serviceaccount: { name: 'default' } } })
            .setProtectedHeader({ alg: 'RS256', kid: 'cluster' })
            .setIssuer(issuer)
            .setSubject(SUBJECT)
            .setAudience(audience)
            .setJti(randomUUID())
            .setIssuedAt()
            .setNotBefore('0s')
            .setExpirationTime(`${lifetimeSeconds}s`)
            .sign(privateKey),
      };
    }

    it('a service-account token is enough, and the newest one is sent with each grant', async () => {
      const cluster = await startCluster();
      await keycloak.admin('POST', '/identity-provider/instances', {
        alias: 'cluster',
        providerId: 'kubernetes',
        enabled: true,
        config: { issuer: cluster.issuer },
      });
      await keycloak.addClient({
        clientId: 'shop-pod',
        clientAuthenticatorType: 'federated-jwt',
        attributes: {
          'jwt.credential.issuer': 'cluster',
          'jwt.credential.sub': SUBJECT,
          'access.token.lifespan': '20',
        },
      });
      const audience = keycloak.issuer('https');
      const sidecar = await start(
        'https',
        { clientAuth: 'kubernetes_jwt' },
        { token: await cluster.token(audience, 10) },
      );
      const first = await sidecar.request();
      expect(first.body).toMatchObject({ claims: { azp: 'shop-pod' } });
      // The first one will have ended by the renewal.
      await sidecar.remount({ token: await cluster.token(audience, 3600) });
      const answers = await trafficUntilNewToken(sidecar, first);
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
      expect(sidecar.grants()).toEqual(['startup success', 'scheduled success']);
    });
  });
});
