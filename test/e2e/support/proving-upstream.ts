import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createH2c, createSecureServer } from 'node:http2';
import type { AddressInfo, Server } from 'node:net';
import type { JSONWebKeySet } from 'jose';
import * as oauth from 'oauth4webapi';
import { onTestFinished } from 'vitest';
import type { Certificate } from '../../support/certificate-authority.ts';
import type { Verdict, VerifyingUpstream } from './upstream.ts';

/**
 * - `none`: a proof needs no nonce.
 * - `lasting`: it needs the nonce that stands in an answer that asks for it.
 * - `once`: each answer gives one, which is good for one request.
 */
export type Nonces = 'none' | 'lasting' | 'once';

interface ProvingOptions {
  readonly issuer: string;
  readonly jwksUri: string;
  /** By default they are fetched from `jwksUri`. */
  readonly keys?: JSONWebKeySet;
  readonly audience: string;
  readonly nonces?: Nonces;
  /** HTTP/1.1 by default; with a certificate HTTP/2, too. */
  readonly serves?: 'h2c' | Certificate;
}

/** An API that takes bound tokens alone. oauth4webapi judges token and proof; a `jti` that comes again is refused. */
export async function startProvingUpstream(options: ProvingOptions): Promise<VerifyingUpstream> {
  const { issuer, jwksUri, keys, audience, nonces = 'none', serves } = options;
  const scheme = typeof serves === 'object' ? 'https' : 'http';
  const verdicts: Verdict[] = [];
  const tokens = new Set<string>();
  const seen = new Set<string>();
  const usable = new Set<string>();

  async function judge(request: IncomingMessage): Promise<Verdict> {
    const { method = '', url = '', headers } = request;
    const proof = headers['dpop'];
    const [, claims = ''] = typeof proof === 'string' ? proof.split('.') : [];
    const { jti, nonce } = JSON.parse(Buffer.from(claims, 'base64url').toString() || '{}');
    if (nonces !== 'none' && !usable.has(nonce)) return { refused: 'use_dpop_nonce' };
    if (nonces === 'once') usable.delete(nonce);
    if (seen.has(jti)) return { refused: 'jti' };
    seen.add(jti);
    const fields = Object.entries(headers)
      .filter(([name]) => !name.startsWith(':'))
      .map(([name, value]) => [name, String(value)] as [string, string]);
    const asked = new Request(`${scheme}://${headers[':authority'] ?? headers.host}${url}`, {
      method,
      headers: fields,
    });
    tokens.add(headers.authorization?.replace(/^DPoP /, '') ?? '');
    try {
      const cache = keys && { [oauth.jwksCache]: { jwks: keys, uat: Math.floor(Date.now() / 1000) } };
      const settings = { requireDPoP: true, [oauth.allowInsecureRequests]: true, ...cache };
      const server = { issuer, jwks_uri: jwksUri };
      return { claims: (await oauth.validateJwtAccessToken(server, asked, audience, settings)) as never };
    } catch (error) {
      return { refused: String(error) };
    }
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.resume();
    const verdict = await judge(request);
    const wantsNonce = 'refused' in verdict && verdict.refused === 'use_dpop_nonce';
    if (!wantsNonce) verdicts.push(verdict);
    if (nonces === 'once' || (nonces === 'lasting' && wantsNonce)) {
      const nonce = randomUUID();
      usable.add(nonce);
      response.setHeader('dpop-nonce', nonce);
    }
    const challenge = `DPoP error="${wantsNonce ? 'use_dpop_nonce' : 'invalid_token'}", algs="ES256"`;
    if ('refused' in verdict) response.setHeader('www-authenticate', challenge);
    response.writeHead('claims' in verdict ? 200 : 401, { 'content-type': 'application/json' });
    response.end(JSON.stringify(verdict));
  }

  const listener = (request: unknown, response: unknown) =>
    void answer(request as IncomingMessage, response as ServerResponse);
  const server: Server =
    typeof serves === 'object'
      ? createSecureServer({ ...serves, allowHTTP1: true }, listener)
      : serves === 'h2c'
        ? createH2c(listener)
        : createServer(listener);
  // The handshake of a WebSocket, and no more of it.
  server.on('upgrade', async (request, socket) => {
    verdicts.push(await judge(request));
    socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    if ('closeAllConnections' in server) (server.closeAllConnections as () => void)();
    server.close();
  });
  return { url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`, verdicts, tokens };
}
