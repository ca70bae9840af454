/** The parameters of a client credentials request (RFC 6749 §4.4.2); requests that allow no grant are refused. */

import { isScopeToken } from './client.ts';
import { Refusal } from './refusal.ts';

export interface GrantRequest {
  /** Requested scopes without repetition; undefined if the client leaves them to the service. */
  readonly scopes?: readonly string[];
  /** Requested audiences, from `audience` and `resource` (RFC 8707); undefined if left to the service. */
  readonly audience?: readonly string[];
}

/** Client authentication other than Basic. Two methods in one request are an error (RFC 6749 §2.3). */
const OTHER_AUTHENTICATION = ['client_secret', 'client_assertion', 'client_assertion_type'];

/** @param clientId the authenticated client, which a `client_id` parameter may repeat but not contradict. */
export function readGrantRequest(
  parameters: ReadonlyMap<string, string>,
  clientId: string,
): GrantRequest | Refusal {
  if (OTHER_AUTHENTICATION.some((name) => parameters.has(name))) {
    return new Refusal('invalid_request', 'the client authenticates with HTTP Basic alone, not in the form');
  }
  if ((parameters.get('client_id') ?? clientId) !== clientId) {
    return new Refusal('invalid_request', 'client_id is not the client of the Authorization header');
  }
  const grantType = parameters.get('grant_type');
  if (grantType === undefined) return new Refusal('invalid_request', 'grant_type is missing');
  if (grantType !== 'client_credentials') {
    return new Refusal('unsupported_grant_type', 'grant_type must be client_credentials');
  }
  const scopes = parameters.get('scope')?.split(' ');
  if (scopes !== undefined && !scopes.every(isScopeToken)) {
    return new Refusal('invalid_scope', 'scope must be scope tokens separated by single spaces');
  }
  const audience = ['audience', 'resource'].flatMap((name) => parameters.get(name) ?? []);
  return {
    ...(scopes === undefined ? {} : { scopes: [...new Set(scopes)] }),
    ...(audience.length === 0 ? {} : { audience: [...new Set(audience)] }),
  };
}
