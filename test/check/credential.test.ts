/** Usual mistakes, told from what a provider really answers. */

import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { checkCredential } from '../../src/check/credential.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { credentialConfig } from '../support/credential-config.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { examination, lines } from './examined.ts';

async function startProvider(listener: RequestListener): Promise<string> {
  const server = createServer((request, response) => {
    request.resume().once('end', () => listener(request, response));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function examined(
  settings: Parameters<typeof credentialConfig>[0],
  client_secret = 'S3CRET',
): Promise<string[]> {
  const { directory } = await mountSecret({ client_id: 'shop', client_secret });
  const { findings } = await checkCredential(credentialConfig({ directory, ...settings }), examination());
  return lines(findings);
}

it('an issuer that sends elsewhere is called by its name, and its clock is looked at', async () => {
  const issuerUrl = await startProvider((_request, response) => {
    response.writeHead(301, { location: 'https://elsewhere.example.com/' }).end();
  });
  const found = await examined({ issuerUrl, tokenUrl: undefined });
  expect(found).toContainEqual(expect.stringMatching(/^failure .*: issuer: .* → http:\/\/127/));
  expect(found.at(-1)).toMatch(/^ok .*: clock: within/);
});

it('what a provider says beside its error names no mistake', async () => {
  const tokenUrl = await startProvider((_request, response) => {
    const error = {
      error: 'invalid_target',
      error_description: 'unauthorized_client: status 404, text/html',
    };
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify(error));
  });
  const refused = (await examined({ tokenUrl: `${tokenUrl}/token` })).filter((line) =>
    /: token: /.test(line),
  );
  expect(refused).toEqual([expect.stringMatching(/ → ask for an audience or resource/)]);
});

it.each([{ method: 'client_secret_basic', encoding: 'form' }, { method: 'client_secret_post' }] as const)(
  'a secret that is only the id again is seen, by $method',
  async (clientAuth) => {
    const tokenUrl = await startProvider((_request, response) => {
      response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":"invalid_client"}');
    });
    const found = await examined({ tokenUrl: `${tokenUrl}/token`, clientAuth }, 'shop');
    expect(found).toContainEqual(
      expect.stringMatching(/: token: .* → client_id and client_secret hold the same value/),
    );
  },
);

it('a client certificate is shown to the provider, and its end is told', async () => {
  const authority = createCertificateAuthority('provider');
  const end = new Date(Date.now() + 86_400_000);
  const { cert, key } = authority.issueUntil(end, 'shop');
  const { directory } = await mountSecret({
    client_id: 'shop',
    'tls.crt': cert,
    'tls.key': key,
    'ca.crt': authority.cert,
  });
  const server = createTlsServer(
    // Over TLS 1.3 a client would learn after its handshake that it lacks one.
    { ...authority.issue('sso', '127.0.0.1'), ca: authority.cert, requestCert: true, maxVersion: 'TLSv1.2' },
    (request, response) => {
      request.resume().once('end', () => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end('{"access_token":"a","token_type":"Bearer","expires_in":300}');
      });
    },
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const config = credentialConfig({
    directory,
    tokenUrl: `https://127.0.0.1:${(server.address() as AddressInfo).port}/token`,
    clientAuth: { method: 'tls_client_auth' },
    tls: { caFile: `${directory}/ca.crt` },
  });
  const { findings, token } = await checkCredential(config, examination());
  expect(token).toBe('a');
  const [, , ownCertificate, , handshake] = lines(findings);
  expect(ownCertificate).toMatch(/^warning .*\/tls\.crt: shop, 0 days left → renew tls\.crt/);
  expect(handshake).toMatch(/^ok .*: provider TLS: TLSv1\.2/);
});
