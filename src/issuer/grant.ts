import type { Client } from './client.ts';
import type { GrantRequest } from './grant-request.ts';
import { Refusal } from './refusal.ts';

/** The content of a token. */
export interface Grant {
  readonly clientId: string;
  readonly scopes: readonly string[];
  /** At least one. */
  readonly audience: readonly string[];
  readonly lifetimeSeconds: number;
}

interface GrantDefaults {
  /** For clients without an audience of their own. */
  readonly audience: string;
  readonly lifetimeSeconds: number;
}

/** A request may narrow its client's rights, but never widen them. */
export function decideGrant(client: Client, request: GrantRequest, defaults: GrantDefaults): Grant | Refusal {
  const allowedAudience = client.audience.length > 0 ? client.audience : [defaults.audience];
  const { scopes = client.scopes, audience = allowedAudience } = request;
  if (!scopes.every((scope) => client.scopes.includes(scope))) {
    return new Refusal('invalid_scope', 'the client may not have a scope that it asks for');
  }
  if (!audience.every((target) => allowedAudience.includes(target))) {
    return new Refusal('invalid_target', 'the client may not have an audience that it asks for');
  }
  return {
    clientId: client.clientId,
    scopes,
    audience,
    lifetimeSeconds: client.tokenLifetimeSeconds ?? defaults.lifetimeSeconds,
  };
}
