import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/platform/time/clock.ts';
import type { ClientCredentials } from '../../src/token/client/client-authentication.ts';
import { createTokenEndpoint } from '../../src/token/provider/token-endpoint.ts';
import { type Certificate, createCertificateAuthority } from '../support/certificate-authority.ts';
import { credentialConfig } from '../support/credential-config.ts';
import { mountSecret } from '../support/kubelet-secret.ts';

type CertifiedClient = Extract<ClientCredentials, { readonly method: 'tls_client_auth' }>;

const authority = createCertificateAuthority('Test CA');

/** A token endpoint that asks for a certificate, and remembers whose it was shown on which connection. */
async function certifyingProvider() {
  const shown: { readonly subject: string; readonly serial: string; readonly connection: number }[] = [];
  const connections: unknown[] = [];
  const server = createServer(
    { ...authority.issue('provider', '127.0.0.1'), ca: authority.cert, requestCert: true },
    (request, response) => {
      const socket = request.socket as TLSSocket;
      if (!connections.includes(socket)) connections.push(socket);
      const { subject, serialNumber } = socket.getPeerCertificate();
      shown.push({ subject: `${subject.CN}`, serial: serialNumber, connection: connections.indexOf(socket) });
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ access_token: 'token', token_type: 'Bearer', expires_in: 60 }));
    },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const trust = await mountSecret({ 'ca.crt': authority.cert });
  const tokenUrl = `https://127.0.0.1:${(server.address() as AddressInfo).port}/token`;
  const endpoint = createTokenEndpoint(
    credentialConfig({ tokenUrl, tls: { caFile: join(trust.directory, 'ca.crt') } }),
    systemClock,
  );
  onTestFinished(() => endpoint.close());
  return {
    shown,
    request: (client: CertifiedClient) => endpoint.requestToken(client, new AbortController().signal),
  };
}

const client = ({ cert, key }: Certificate): CertifiedClient => ({
  method: 'tls_client_auth',
  clientId: 'shop',
  certificate: cert,
  privateKey: key,
});

describe('tls_client_auth', () => {
  it('uses the certificate, and a new connection for a renewed certificate', async () => {
    const { shown, request } = await certifyingProvider();
    const [first, renewed] = [client(authority.issue('shop')), client(authority.issue('shop'))];
    for (const credentials of [first, first, renewed]) {
      expect(await request(credentials)).toMatchObject({ result: 'success' });
    }
    expect(shown.map(({ subject }) => subject)).toEqual(['shop', 'shop', 'shop']);
    expect(shown.map(({ connection }) => connection)).toEqual([0, 0, 1]);
    expect(shown[0]?.serial).toBe(shown[1]?.serial);
    expect(shown[2]?.serial).not.toBe(shown[1]?.serial);
  });

  it('fails with a reason, without a crash, when the provider does not trust the certificate', async () => {
    const { request } = await certifyingProvider();
    const stranger = createCertificateAuthority('Another CA').issue('shop');
    const outcome = await request(client(stranger));
    expect(outcome).toMatchObject({ result: 'unavailable' });
    expect(JSON.stringify(outcome)).not.toContain('PRIVATE KEY');
  });
});
