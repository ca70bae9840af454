import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import { Agent, fetch } from 'undici';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { createCertificateAuthority } from '../../support/certificate-authority.ts';
import { basic, FORM } from './running-issuer.ts';
import { runIssuerCommand as run } from './running-issuer-command.ts';

interface Metadata {
  readonly issuer: string;
  readonly token_endpoint: string;
  readonly jwks_uri: string;
}

const WELL_KNOWN = [
  '/realms/dx/.well-known/openid-configuration',
  '/.well-known/oauth-authorization-server/realms/dx',
];

let args: readonly string[];
beforeEach(async () => {
  const root = await mkdtemp(join(tmpdir(), 'token-sidecar-discovery-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  await writeFile(join(root, 'clients.yaml'), 'clients: [{ clientId: shop, clientSecret: s3cret }]');
  args = [
    ...['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'],
    ...['--clients-file', join(root, 'clients.yaml')],
  ];
});

/** TLS in front of both listeners, as an ingress routes to two ports of the Service. */
async function startFront(): Promise<{
  readonly url: string;
  readonly agent: Agent;
  route(tokens: string, discovery: string): void;
}> {
  const authority = createCertificateAuthority('CA of the front');
  const { cert, key } = authority.issue('front', '127.0.0.1');
  let targets = { tokens: '', discovery: '' };
  const front = createServer({ cert, key }, (incoming, outgoing) => {
    const target = incoming.url?.endsWith('/token') === true ? targets.tokens : targets.discovery;
    const [hostname, port] = target.split(':');
    const { method, url: path, headers } = incoming;
    const onward = request({ hostname, port, method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(onward);
  });
  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  const agent = new Agent({ connect: { ca: authority.cert } });
  onTestFinished(async () => {
    await agent.destroy();
    front.close();
  });
  return {
    url: `https://127.0.0.1:${(front.address() as AddressInfo).port}`,
    agent,
    route(tokens, discovery) {
      targets = { tokens, discovery };
    },
  };
}

describe('discovery', () => {
  it.each(WELL_KNOWN)('on the admin listener, at %s, leads to a token that verifies', async (path) => {
    const { admin, issuer, tokenUrl, listen } = await run(args).logged('ready');
    const found = (await (await fetch(`http://${admin}${path}`)).json()) as Metadata;
    expect(found).toEqual({
      issuer,
      token_endpoint: tokenUrl,
      jwks_uri: `http://${admin}/realms/dx/protocol/openid-connect/certs`,
      grant_types_supported: ['client_credentials'],
      token_endpoint_auth_methods_supported: ['client_secret_basic'],
      dpop_signing_alg_values_supported: ['ES256', 'ES384', 'EdDSA', 'Ed25519', 'RS256', 'PS256'],
      response_types_supported: [],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256'],
    });
    expect((await fetch(found.jwks_uri)).status).toBe(200);
    // The token listener has one operation.
    expect((await fetch(`http://${listen}${path}`)).status).toBe(404);
  });

  it('behind TLS, with a base path, needs nothing but the issuer', async () => {
    const front = await startFront();
    const command = run([...args, '--auth-url', `${front.url}/auth`, '--admin-url', front.url]);
    const { admin, listen } = await command.logged('ready');
    front.route(String(listen), String(admin));
    const dispatcher = front.agent;
    const issuer = `${front.url}/auth/realms/dx`;

    const answer = await fetch(`${issuer}/.well-known/openid-configuration`, { dispatcher });
    const found = (await answer.json()) as Metadata;
    expect(found.issuer).toBe(issuer);
    const grant = await fetch(found.token_endpoint, {
      dispatcher,
      method: 'POST',
      headers: { 'Content-Type': FORM, Authorization: basic('shop', 's3cret') },
      body: 'grant_type=client_credentials',
    });
    const { access_token } = (await grant.json()) as { access_token: string };
    const keys = (await (await fetch(found.jwks_uri, { dispatcher })).json()) as JSONWebKeySet;
    const { payload } = await jwtVerify(access_token, createLocalJWKSet(keys), { issuer: found.issuer });
    expect(payload.sub).toBe('shop');
  });
});
