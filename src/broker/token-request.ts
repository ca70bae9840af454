/** A request for a token: RFC 6749 §4.4 with the pod's service account token as the client's proof (RFC 7523 §2.2). */

import { FormFault, parseForm } from '../platform/form.ts';
import { REFUSED_TOKEN_HASH, readRefusedTokenHash } from '../token/broker-protocol.ts';
import { type Refusal, refusal } from './broker-answer.ts';

export interface TokenRequest {
  readonly kind: 'request';
  readonly profile: string;
  readonly credential: string;
  /** The service account token, not verified. */
  readonly assertion: string;
  readonly clientId: string | undefined;
  readonly scope: string | undefined;
  /** SHA-256 of a token that an upstream has refused. */
  readonly refusedTokenHash: Buffer | undefined;
}

export interface Message {
  readonly method: string | undefined;
  /** As received. */
  readonly target: string;
  /** At least the fields in `READ_FIELDS`, by lower-case name, each with its values as received. */
  readonly headers: Readonly<Record<string, readonly string[] | undefined>>;
}

/** The requested credential, once the request's form allows reading on. */
export interface Address {
  readonly kind: 'address';
  readonly profile: string;
  readonly credential: string;
}

const NAME = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';
/** The path must match literally: with percent-encoding, dots in place of names, or a query it is another path. */
const PATH = new RegExp(`^/token/(${NAME})/(${NAME})$`);

const FORM = /^application\/x-www-form-urlencoded\s*(;|$)/i;

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

/** The fields that `readAddress` looks at; nothing else reads fields. */
export const READ_FIELDS: ReadonlySet<string> = new Set([
  'authorization',
  'content-type',
  'content-encoding',
]);

/** Whether the body is worth reading. */
export function readAddress({ method, target, headers }: Message): Address | Refusal {
  const [, profile, credential] = PATH.exec(target) ?? [];
  if (profile === undefined || credential === undefined) {
    return refusal(
      'not_found',
      'there is /token/PROFILE/CREDENTIAL, with names as they are, and nothing else',
    );
  }
  if (method !== 'POST') return refusal('method_not_allowed', 'use POST');
  if (headers['authorization'] !== undefined) {
    return refusal('invalid_request', 'the client is proved by client_assertion, and by nothing beside it');
  }
  const types = headers['content-type'] ?? [];
  if (types.length !== 1 || !FORM.test(types[0] as string)) {
    return refusal('unsupported_media_type', 'use application/x-www-form-urlencoded');
  }
  if (headers['content-encoding'] !== undefined) {
    return refusal('unsupported_media_type', 'send the form as it is, without a content encoding');
  }
  return { kind: 'address', profile, credential };
}

export function readTokenRequest({ profile, credential }: Address, body: Uint8Array): TokenRequest | Refusal {
  const form = parseForm(body);
  if (form instanceof FormFault) return refusal('invalid_request', form.description);
  if (form.get('grant_type') !== 'client_credentials') {
    return refusal('unsupported_grant_type', 'grant_type is client_credentials');
  }
  if (form.has('client_secret')) {
    return refusal('invalid_request', 'the client is proved by client_assertion, and by nothing beside it');
  }
  const assertion = form.get('client_assertion');
  if (form.get('client_assertion_type') !== ASSERTION_TYPE || assertion === undefined) {
    return refusal(
      'invalid_request',
      `a client_assertion is needed, of client_assertion_type ${ASSERTION_TYPE}`,
    );
  }
  if (form.has('audience') || form.has('resource')) {
    return refusal('invalid_target', 'the profile says what the token is for');
  }
  const reported = form.get(REFUSED_TOKEN_HASH);
  const refusedTokenHash = reported === undefined ? undefined : readRefusedTokenHash(reported);
  if (reported !== undefined && refusedTokenHash === undefined) {
    return refusal('invalid_request', `${REFUSED_TOKEN_HASH} is a SHA-256 in base64url, 43 characters`);
  }
  return {
    kind: 'request',
    profile,
    credential,
    assertion,
    clientId: form.get('client_id'),
    scope: form.get('scope'),
    refusedTokenHash,
  };
}
