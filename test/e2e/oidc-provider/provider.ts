import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { exportJWK, type JSONWebKeySet } from 'jose';
import Provider from 'oidc-provider';
import { onTestFinished } from 'vitest';
import type { CertificateAuthority } from '../../support/certificate-authority.ts';

export const API = 'https://api.example.com';

export interface RunningProvider {
  readonly issuer: string;
  readonly tokenUrl: string;
  readonly keys: JSONWebKeySet;
}

export interface ProviderOptions {
  /** Issues the server's certificate and is the only one that client certificates are accepted from; plain without. */
  readonly authority?: CertificateAuthority;
  /** Client metadata (RFC 7591 §2). */
  readonly clients: readonly Readonly<Record<string, unknown>>[];
  readonly tokenLifetimeSeconds: number;
  /** Whether a proof at the token endpoint must hold a nonce of the provider. */
  readonly requiresNonce?: boolean;
  /** FAPI 2.0 Security Profile. */
  readonly fapi?: boolean;
}

/** oidc-provider with the client credentials grant and signed access tokens for `API`; gone after the test. */
export async function startProvider(options: ProviderOptions): Promise<RunningProvider> {
  const { authority } = options;
  let handle: (request: IncomingMessage, response: ServerResponse) => void = () => undefined;
  const listener = (request: IncomingMessage, response: ServerResponse): void => handle(request, response);
  const server: Server =
    authority === undefined
      ? createHttpServer(listener)
      : createHttpsServer(
          {
            ...authority.issue('oidc-provider', '127.0.0.1'),
            ca: authority.cert,
            requestCert: true,
            rejectUnauthorized: false,
          },
          listener,
        );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const scheme = authority === undefined ? 'http' : 'https';
  const issuer = `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const signing = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const identity = { kid: 'signing', alg: 'ES256', use: 'sig' };
  const provider = new Provider(
    issuer,
    configuration(options, { ...(await exportJWK(signing.privateKey)), ...identity }),
  );
  handle = provider.callback();
  return {
    issuer,
    tokenUrl: `${issuer}/token`,
    keys: { keys: [{ ...(await exportJWK(signing.publicKey)), ...identity }] },
  };
}

function configuration(
  { clients, tokenLifetimeSeconds, requiresNonce = false, fapi = false }: ProviderOptions,
  signingKey: object,
): object {
  return {
    clients: clients.map((client) => ({
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
      scope: 'read write',
      id_token_signed_response_alg: 'ES256',
      ...client,
    })),
    jwks: { keys: [signingKey] },
    enabledJWA: { dPoPSigningAlgValues: ['ES256', 'ES384', 'EdDSA', 'RS256', 'PS256'] },
    scopes: ['read', 'write'],
    ttl: { ClientCredentials: tokenLifetimeSeconds },
    clientAuthMethods: [
      'client_secret_basic',
      'client_secret_post',
      'private_key_jwt',
      'tls_client_auth',
      'self_signed_tls_client_auth',
    ],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      fapi: { enabled: fapi, profile: '2.0' },
      dPoP: { enabled: true, nonceSecret: Buffer.alloc(32, 7), requireNonce: () => requiresNonce },
      mTLS: {
        enabled: true,
        tlsClientAuth: true,
        selfSignedTlsClientAuth: true,
        getCertificate: (context: Context) => certificateOf(context)?.toString(),
        certificateAuthorized: ({ req }: Context) => (req.socket as TLSSocket).authorized,
        certificateSubjectMatches: (context: Context, property: string, expected: string) =>
          property === 'tls_client_auth_subject_dn' && certificateOf(context)?.subject === expected,
      },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => API,
        getResourceServerInfo: (_context: unknown, resource: string) => ({
          scope: 'read write',
          audience: resource,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
  };
}

interface Context {
  readonly req: IncomingMessage;
}

function certificateOf({ req }: Context): X509Certificate | undefined {
  const { raw } = (req.socket as TLSSocket).getPeerCertificate();
  return raw === undefined ? undefined : new X509Certificate(raw);
}
