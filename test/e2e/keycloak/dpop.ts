import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { SecretValues } from '../../../src/platform/mounted/secret-layout.ts';
import { whyNoToken } from '../../../src/token/why-no-token.ts';
import { type AppAnswer, runSidecar, type SidecarUnderTest } from '../support/sidecar.ts';
import { startTraffic } from '../support/traffic.ts';
import type { Keycloak, Transport } from './keycloak.ts';

const FILES = { client_id: 'bound', client_secret: 'secret-of-bound' };

/** Keycloak binds the tokens, and its userinfo judges token and proof. @param running started once for all of its tests. */
export function dpopTests(running: () => Keycloak): void {
  describe('tokens that are bound to a key (DPoP)', () => {
    let keycloak: Keycloak;
    beforeAll(async () => {
      keycloak = running();
      await addClient(FILES.client_id, FILES.client_secret);
    });

    /** Keycloak's switch "Require DPoP bound tokens". */
    async function addClient(clientId: string, secret: string, more: object = {}): Promise<void> {
      const attributes = { 'dpop.bound.access.tokens': 'true', ...more };
      await keycloak.addClient({ clientId, secret, attributes });
    }

    /** A sidecar whose upstream is Keycloak itself. */
    async function start(transport: Transport, files: SecretValues = FILES, credential: object = {}) {
      const own = { ...keycloak.credential(transport), scope: 'openid', ...credential };
      const upstream = { url: keycloak.url(transport) };
      const route = 'tls' in own ? { tls: own.tls } : {};
      return await runSidecar({ credential: own, files, upstream, route });
    }

    /** A request to userinfo, through the proxy. */
    const withUserinfo = ({ address }: SidecarUnderTest) => ({
      async request(): Promise<AppAnswer> {
        const url = `${userinfoAt(`http://${address}`)}?of=${randomUUID()}`;
        const response = await fetch(url, { headers: { connection: 'close' } });
        const error = response.headers.get('token-sidecar-error');
        const text = await response.text();
        const body = response.ok ? { claims: JSON.parse(text) } : { refused: text };
        return { status: response.status, error, body };
      },
    });

    it.each(['http', 'https'] as const)('userinfo takes token and proof over %s', async (transport) => {
      const sidecar = await start(transport, FILES, { proofOfPossession: 'dpop' });
      expect(await withUserinfo(sidecar).request()).toMatchObject({
        status: 200,
        body: { claims: { preferred_username: 'service-account-bound' } },
      });
    });

    it('what an upstream was sent is of no use to it elsewhere', async () => {
      const sent: Record<string, string> = {};
      const server = createServer(({ headers }, response) => {
        Object.assign(sent, { authorization: headers.authorization, dpop: headers['dpop'] });
        response.end('{}');
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      onTestFinished(() => void server.close());
      const sidecar = await runSidecar({
        credential: { ...keycloak.credential('http'), scope: 'openid', proofOfPossession: 'dpop' },
        files: FILES,
        upstream: { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
      });
      await sidecar.request();
      expect(sent['authorization']).toMatch(/^DPoP /);
      const asBearer = { authorization: sent['authorization']?.replace('DPoP', 'Bearer') ?? '' };
      for (const headers of [sent, asBearer]) {
        const answer = await fetch(userinfoAt(keycloak.url('http')), { headers });
        expect(answer.status).toBe(401);
      }
    });

    it('tokens of 5 s and a changed key: no request under way notices', async () => {
      const files = { client_id: 'bound-5s', client_secret: 'secret-of-bound-5s' };
      await addClient(files.client_id, files.client_secret, { 'access.token.lifespan': '5' });
      const key = (namedCurve: string): string =>
        String(generateKeyPairSync('ec', { namedCurve }).privateKey.export({ type: 'pkcs8', format: 'pem' }));
      const dpop = { proofOfPossession: 'dpop', dpop: { keyFile: 'key' } };
      const sidecar = await start('http', { ...files, key: key('P-256') }, dpop);
      const traffic = startTraffic(withUserinfo(sidecar));
      await traffic.until(() => sidecar.grants().includes('scheduled success'));
      await sidecar.remount({ ...files, key: key('P-384') });
      await traffic.until(() => sidecar.grants().includes('rotation success'));
      const changed = sidecar.grants().length;
      await traffic.until(() => sidecar.grants().length > changed);
      expect(new Set((await traffic.stop()).map(({ status }) => status))).toEqual(new Set([200]));
      expect(sidecar.grants().every((grant) => grant.endsWith('success'))).toBe(true);
    });

    it('without proofOfPossession the provider gives no token, and the setting is named', async () => {
      const sidecar = await start('http');
      expect(await sidecar.request()).toMatchObject({ status: 503, error: 'token_unavailable' });
      const { lastFailure } = sidecar.snapshot();
      expect(lastFailure?.detail).toBe('status 400 invalid_request: DPoP proof is missing');
      const source = {
        directory: '/secret',
        tokenUrl: `${keycloak.issuer('http')}/protocol/openid-connect/token`,
      };
      expect(whyNoToken(source, { lastFailure }).advice).toBe('set proofOfPossession: dpop');
    });
  });
}

function userinfoAt(base: string): string {
  return `${base}/realms/dx/protocol/openid-connect/userinfo`;
}
