/** Usual mistakes, told from what a provider really answers. */

import { once } from 'node:events';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { checkCredential } from '../../src/check/credential.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { credentialConfig } from '../support/credential-config.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { RENEWAL } from '../token/policy.ts';
import { examination, lines, serve } from './examined.ts';

async function examined(
  settings: Parameters<typeof credentialConfig>[0],
  client_secret = 'S3CRET',
): Promise<string[]> {
  const { directory } = await mountSecret({ client_id: 'shop', client_secret });
  const { findings } = await checkCredential(credentialConfig({ directory, ...settings }), examination());
  return lines(findings);
}

it('an issuer that sends elsewhere is called by its name, and its clock is looked at', async () => {
  const issuerUrl = await serve((_request, response) => {
    response.writeHead(301, { location: 'https://elsewhere.example.com/' }).end();
  });
  const found = await examined({ issuerUrl, tokenUrl: undefined });
  expect(found).toContainEqual(expect.stringMatching(/^failure .*: issuer: .* → http:\/\/127/));
  expect(found.at(-1)).toMatch(/^ok .*: clock: within/);
});

it('what a provider says beside its error names no mistake', async () => {
  const tokenUrl = await serve((_request, response) => {
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
    const tokenUrl = await serve((_request, response) => {
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

describe('a credential that exchanges the tokens of requests', () => {
  const grant = {
    type: 'token_exchange',
    subjectTokenType: 'urn:ietf:params:oauth:token-type:access_token',
  } as const;

  async function answering(
    status: number,
    body: string,
  ): Promise<{ line: string | undefined; sent: string }> {
    let sent = '';
    const server = createServer((request, response) => {
      request.on('data', (chunk) => (sent += chunk));
      request.once('end', () => {
        response.writeHead(status, { 'content-type': 'application/json' }).end(body);
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const tokenUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`;
    const found = await examined({ tokenUrl, grant });
    return { line: found.find((one) => /: token: /.test(one)), sent };
  }

  it('is asked with a made-up token, which shows a wrong secret', async () => {
    const { line, sent } = await answering(401, '{"error":"invalid_client"}');
    expect(line).toMatch(
      /^failure .* rejected the client \(status 401 invalid_client\) → compare the Secret/,
    );
    expect(new URLSearchParams(sent).get('subject_token')).toMatch(/^made-up/);
  });

  it.each([
    ['invalid_request', 'Invalid token: made-up-by-token-sidecar-check'],
    ['invalid_grant', 'made-up-by-token-sidecar-check'],
    ['invalid_token', 'made-up-by-token-sidecar-check'],
  ])('is well if only that is refused: %s', async (error, error_description) => {
    const { line } = await answering(400, JSON.stringify({ error, error_description }));
    expect(line).toMatch(
      /^ok .*: the provider takes the client, and refuses only the made-up token of this check/,
    );
    expect(line).not.toContain('made-up-by');
  });

  it('fails of anything else that requests would meet', async () => {
    expect((await answering(400, '{"error":"unsupported_grant_type"}')).line).toMatch(
      /^failure .* allow the client/,
    );
    expect((await answering(404, 'no')).line).toMatch(/^failure .*status 404/);
    expect((await answering(503, 'down')).line).toMatch(/^failure .*status 503/);
  });

  it('is doubtful if the answer does not say who is meant', async () => {
    const disabled = 'Standard token exchange is not enabled for the requested client';
    for (const body of [
      { error: 'invalid_request', error_description: disabled },
      { error: 'access_denied', error_description: 'Client not allowed to exchange' },
    ]) {
      expect((await answering(400, JSON.stringify(body))).line).toMatch(/^warning .*or the made-up token/);
    }
    expect((await answering(401, '')).line).toMatch(/^warning .*refuses the client, or the made-up token/);
    expect((await answering(500, '')).line).toMatch(/^warning .*status 500/);
  });

  it('is doubtful if a made-up token is exchanged', async () => {
    const { line } = await answering(200, '{"access_token":"a","token_type":"Bearer","expires_in":300}');
    expect(line).toMatch(/^warning .*exchanges a token that nobody has issued/);
  });
});

it('a token that does not say how long it lives is said to be assumed', async () => {
  const provider = await serve((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end('{"access_token":"opaque","token_type":"Bearer"}');
  });
  const found = await examined({ tokenUrl: `${provider}/token` });
  const seconds = RENEWAL.defaultLifetimeMs / 1000;
  expect(found).toContainEqual(
    expect.stringMatching(
      `: token: granted by \\S+; it does not say how long it lives, and ${seconds} s are assumed$`,
    ),
  );
  expect(found).toContainEqual(expect.stringMatching(`: token lifetime: ${seconds} s assumed`));
});

describe('the token endpoint', () => {
  async function offline(settings: Parameters<typeof credentialConfig>[0]): Promise<string | undefined> {
    const config = credentialConfig(settings);
    const { findings } = await checkCredential(config, examination({ isOffline: true }));
    return lines(findings).find((line) => /: token endpoint: /.test(line));
  }

  it('is looked at offline, too, without a Secret', async () => {
    const base = 'https://sso.example.com/oauth2/token';
    expect(await offline({ tokenUrl: `${base}/realms/dx/protocol/openid-connect/token` })).toMatch(
      /^warning .* → the base URL is a whole token endpoint: give it as tokenUrl \(--token-url\) in place of authUrl$/,
    );
    expect(await offline({ tokenUrl: base })).toBe(
      `ok credential default: token endpoint: POST ${base}, grant client_credentials, client by client_secret_basic`,
    );
  });

  it('is shown with the grant of its query, and nothing else of that', async () => {
    const tokenUrl = 'https://zoom.us/oauth/token?grant_type=account_credentials&account_id=s3cret';
    expect(await offline({ tokenUrl })).toMatch(
      /POST https:\/\/zoom\.us\/oauth\/token\?…, grant account_credentials, client by/,
    );
  });
});
