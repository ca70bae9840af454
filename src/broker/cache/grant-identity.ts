/** What makes two grants the same: the text by which a shared token is found, once hashed with a key. */

import { KeyObject } from 'node:crypto';
import type { CredentialConfig } from '../../config/config.ts';
import type { Credentials } from '../../token/credentials.ts';

/**
 * Everything on which a provider's grant depends: another scope, secret or key gives another text. It holds secrets in
 * clear: use it only as input of an HMAC.
 * @returns undefined for grants that depend on more than their credentials: those with tokens that somebody else keeps
 * fresh, and mounted tokens, which cost no grant.
 */
export function grantIdentity(config: CredentialConfig, credentials: Credentials): string | undefined {
  const { name, tokenUrl, issuerUrl, clientId, clientAuth, grant, scope, audience, parameters, tokenType } =
    config;
  if (clientAuth.method === 'kubernetes_jwt') return undefined;
  if (grant?.type === 'token_exchange' || grant?.type === 'static') return undefined;
  const settings = { name, tokenUrl, issuerUrl, clientId, clientAuth, grant, scope, audience, parameters };
  return JSON.stringify(ordered({ settings, tokenType, credentials }));
}

/** With the fields of objects in a fixed order, so that equal values give equal texts. */
function ordered(value: unknown): unknown {
  if (value instanceof KeyObject) return value.export({ type: 'pkcs8', format: 'der' }).toString('base64');
  if (Array.isArray(value)) return value.map(ordered);
  if (typeof value !== 'object' || value === null) return value;
  if (Object.getPrototypeOf(value) !== Object.prototype) {
    throw new Error('a credential holds something of which a text would not say what it is');
  }
  const fields = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return fields.map(([name, field]) => [name, ordered(field)]);
}
