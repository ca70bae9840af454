import { type AdminEndpoint, json } from '../admin/admin-server.ts';
import { probes } from '../admin/probes.ts';
import { DPOP_ALGORITHMS } from './dpop-proof.ts';
import type { Issuer } from './issuer.ts';

/**
 * Probes, public keys at `/jwks` and Keycloak's path, and discovery (OpenID Connect, RFC 8414). Nothing can be missing,
 * since an issuer exists only once it serves.
 * @param adminUrl where others reach this listener; without it there is no discovery.
 */
export function issuerAdminEndpoints(
  issuer: Issuer,
  draining: () => boolean,
  adminUrl?: () => string,
): Readonly<Record<string, AdminEndpoint>> {
  const path = new URL(issuer.issuer).pathname;
  const certs = `${path}/protocol/openid-connect/certs`;
  const jwks: AdminEndpoint = {
    method: 'GET',
    audience: 'everybody',
    answer: () => json(200, issuer.jwks()),
  };
  return {
    ...probes({ draining, started: () => true, missing: () => [] }),
    '/jwks': jwks,
    [certs]: jwks,
    ...(adminUrl === undefined ? {} : discovery(() => `${adminUrl().replace(/\/+$/, '')}${certs}`)),
  };

  function discovery(jwksUri: () => string): Readonly<Record<string, AdminEndpoint>> {
    const endpoint: AdminEndpoint = {
      method: 'GET',
      audience: 'everybody',
      answer: () => json(200, describeIssuer(issuer, jwksUri())),
    };
    return {
      [`${path}/.well-known/openid-configuration`]: endpoint,
      [`/.well-known/oauth-authorization-server${path}`]: endpoint,
    };
  }
}

/** RFC 8414 §2, OpenID Connect Discovery §3 and RFC 9449 §5.1. */
function describeIssuer({ issuer, tokenUrl, jwks }: Issuer, jwksUri: string): Record<string, unknown> {
  return {
    issuer,
    token_endpoint: tokenUrl,
    jwks_uri: jwksUri,
    grant_types_supported: ['client_credentials'],
    token_endpoint_auth_methods_supported: ['client_secret_basic'],
    dpop_signing_alg_values_supported: DPOP_ALGORITHMS,
    // Required, although there is neither an authorization endpoint nor an ID token.
    response_types_supported: [],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: [...new Set(jwks().keys.map(({ alg }) => alg))],
  };
}
