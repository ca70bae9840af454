import { type AdminEndpoint, json } from '../admin/admin-server.ts';
import { probes } from '../admin/probes.ts';
import type { Issuer } from '../issuer/issuer.ts';

/**
 * What the issuer's admin listener answers besides metrics: the probes, and the public keys at `/jwks` and, for
 * verifiers that know the realm alone, where Keycloak has them below the issuer. An issuer exists only once its
 * clients and its key are loaded and it listens, so nothing can be missing any more.
 */
export function issuerAdminEndpoints(
  issuer: Issuer,
  draining: () => boolean,
): Readonly<Record<string, AdminEndpoint>> {
  const jwks: AdminEndpoint = { method: 'GET', answer: () => json(200, issuer.jwks()) };
  return {
    ...probes({ draining, started: () => true, missing: () => [] }),
    '/jwks': jwks,
    [`${new URL(issuer.issuer).pathname}/protocol/openid-connect/certs`]: jwks,
  };
}
