/** Why there is no token and what to do, for the person who has to mend it: the only place that has these words. */

import type { CredentialSettings, ProviderAddress } from '../config/config.ts';
import { redactedUrl } from '../platform/log/redacted-text.ts';
import { instantAndDistance } from '../platform/time/words.ts';
import { REFUSALS } from './broker-protocol.ts';
import type { ClientKey } from './client/client-authentication.ts';
import type { FailedTokenRequest } from './token-state.ts';

/** Without a secret or the credential's name. */
export interface NoToken {
  /** Decides the exit status. */
  readonly code: 'configuration' | 'credentials_rejected' | 'provider_unavailable';
  /** A clause. */
  readonly reason: string;
  /** A clause; undefined if none is known to fit the reason. */
  readonly advice: string | undefined;
  /** The provider does not accept the client's id, secret or key. */
  readonly clientRejected: boolean;
}

interface WhatHappened {
  readonly unusable?: string | undefined;
  readonly lastFailure?: Pick<FailedTokenRequest, 'result' | 'detail'> | undefined;
  /** The key that signs for the client. */
  readonly clientKey?: ClientKey | undefined;
  /** When the provider last answered, and the time now, in wall ms. */
  readonly lastAnswer?: { readonly atMs: number; readonly nowMs: number } | undefined;
}

type Source = Pick<CredentialSettings, 'directory' | 'scope' | 'dpop'> & ProviderAddress;

export function whyNoToken(source: Source, happened: WhatHappened): NoToken {
  const { directory, tokenUrl, issuerUrl } = source;
  const { unusable, lastFailure } = happened;
  const asked = tokenUrl ?? issuerUrl;
  if (asked === undefined) return whyNoMountedToken(directory, happened);
  const where = redactedUrl(asked);
  if (unusable !== undefined) {
    return {
      code: 'configuration',
      reason: `no token was asked of ${where}, because ${unusable}`,
      advice: `mend the Secret that is mounted at ${directory}`,
      clientRejected: false,
    };
  }
  if (lastFailure?.result === 'rejected') return whyRefused(where, lastFailure.detail, source, happened);
  if (lastFailure === undefined) {
    return {
      code: 'provider_unavailable',
      reason: `${where} has not answered yet`,
      advice: undefined,
      clientRejected: false,
    };
  }
  const { detail } = lastFailure;
  const stopped = NO_ANSWER.test(detail) ? happened.lastAnswer : undefined;
  return {
    code: 'provider_unavailable',
    reason:
      stopped === undefined
        ? `${where} gave no token (${detail})`
        : `${where} gave no token (${detail}); it last answered ${instantAndDistance(stopped.atMs, stopped.nowMs)}`,
    advice:
      stopped === undefined
        ? firstFor(detail, [...OF_CONNECTIONS, ...OF_ANSWERS])
        : 'look whether the provider runs, and at what lies between',
    clientRejected: false,
  };
}

function whyNoMountedToken(directory: string, { unusable, lastFailure }: WhatHappened): NoToken {
  const why = unusable ?? lastFailure?.detail ?? 'it has not been read yet';
  return {
    code: 'configuration',
    reason: `the token that is mounted at ${directory} cannot be used (${why})`,
    advice: /exp is past/.test(why) ? 'mount a newer one; if it is new, set the clock' : 'mend the Secret',
    clientRejected: false,
  };
}

/** @param detail such as `status 401 invalid_client: …` */
function whyRefused(
  where: string,
  detail: string,
  { directory, scope, dpop }: Source,
  { clientKey }: WhatHappened,
): NoToken {
  if (dpop === undefined && WANTS_PROOF.test(detail)) {
    return {
      code: 'credentials_rejected',
      reason: `${where} binds the client's tokens to a key (${detail})`,
      advice: 'set proofOfPossession: dpop',
      clientRejected: false,
    };
  }
  const found = REFUSED.find(([pattern]) => pattern.test(detail));
  if (found !== undefined) {
    const [, what, advice] = found;
    const shown = what === SCOPE && scope !== undefined ? `${what} ${JSON.stringify(scope)}` : what;
    return {
      code: 'credentials_rejected',
      reason: `${where} ${shown} (${detail})`,
      advice,
      clientRejected: false,
    };
  }
  const reason = `${where} rejected the client (${detail})`;
  if (clientKey === undefined || !/^status \d+ invalid_client\b/.test(detail)) {
    const advice = `compare the Secret that is mounted at ${directory} with the client there`;
    return { code: 'credentials_rejected', reason, advice, clientRejected: true };
  }
  return {
    code: 'credentials_rejected',
    reason: `${reason}; it is signed for by the key with ${nameOfKey(clientKey)}`,
    advice: 'register that key for the client there, or mount the one that is registered',
    clientRejected: true,
  };
}

function nameOfKey({ keyId, thumbprint }: ClientKey): string {
  if (keyId === undefined) return `thumbprint ${thumbprint}`;
  return keyId === thumbprint ? `kid and thumbprint ${keyId}` : `kid ${keyId} and thumbprint ${thumbprint}`;
}

/** RFC 9449 §5; Keycloak says `invalid_request: DPoP proof is missing`. */
const WANTS_PROOF = /^status \d+ (?:invalid_dpop_proof|use_dpop_nonce|invalid_request: .*DPoP)/;

const SCOPE = 'refused the scope';
const GRANT = 'does not allow the client this grant';

/** All other refusals are of the client. The first match counts. */
const REFUSED: readonly (readonly [RegExp, what: string, advice: string | undefined])[] = [
  [
    new RegExp(REFUSALS.noSuchCredential),
    'gives the pod no such credential',
    "have the ClusterTokenProfile admit the pod's namespace and service account",
  ],
  [
    new RegExp(REFUSALS.assertionNotTaken),
    "did not take the pod's token",
    "look at the broker's log, which says why",
  ],
  [
    /^status \d+ (?:invalid_dpop_proof|use_dpop_nonce)\b/,
    'refused the proof of the key',
    "compare the clocks, the token endpoint's URL with the provider's own, and the key's algorithm with those it takes",
  ],
  // Keycloak also says so of a wrong secret, Entra of an unknown client.
  [
    /^status \d+ unauthorized_client(?!.*(?:invalid client|\bcredentials|secret|AADSTS70001))/i,
    GRANT,
    'allow the client the grant there',
  ],
  [/^status \d+ unsupported_grant_type\b/, GRANT, 'allow the client the grant there'],
  [/^status \d+ invalid_scope\b/, SCOPE, 'ask for a scope that the client may have there'],
  [
    /^status \d+ invalid_target\b/,
    'refused the audience or resource',
    'ask for an audience or resource that the client may have there',
  ],
  [
    /^status \d+ invalid_grant\b/,
    'refused the assertion or token that was presented',
    'compare its issuer, audience and key with what the provider expects, and the clocks',
  ],
  // Auth0 says so with 401 of a wrong client or secret.
  [/^status (?!401)\d+ access_denied\b/, 'denied access', 'allow the client there what it asks for'],
  [
    /^status 403\b(?! invalid_client)/,
    'refused the request',
    'look at what the client may do there, and at firewalls in front of the provider',
  ],
  [/^status (?!401)\d+ (?!invalid_client|unauthorized_client)/, 'refused the request', undefined],
];

type Advice = readonly (readonly [RegExp, string])[];

/** The provider, or what lies between, is silent. */
const NO_ANSWER = /^(ECONNREFUSED|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|no whole answer)/;

/** Refused certificates, as OpenSSL and Node name them. */
const UNTRUSTED = /SELF_SIGNED|UNABLE_TO_(GET_ISSUER|VERIFY)|CERT_UNTRUSTED|INVALID_CA|ISSUER_CERT/;

/** The first match counts. */
const OF_CONNECTIONS: Advice = [
  [
    /^the egress proxy .*(ENOTFOUND|EAI_AGAIN)/,
    "look at egressProxy.url: check the name in it and the pod's DNS",
  ],
  [/^the egress proxy .*(with 407|cannot be asked)/, 'look at egressProxy.credentialsDir'],
  [
    /^the egress proxy .*(cannot be reached|no tunnel within)/,
    'look at egressProxy.url: check host and port, and NetworkPolicies',
  ],
  [/^the egress proxy /, 'look at egressProxy.url and at what the proxy lets through'],
  [/ENOTFOUND|EAI_AGAIN/, "check the host's name and the pod's DNS"],
  [
    UNTRUSTED,
    'let the sidecar trust the authority that signed its certificate (tls.caFile, or NODE_EXTRA_CA_CERTS)',
  ],
  [/CERT_HAS_EXPIRED|CERT_NOT_YET_VALID/, 'renew its certificate, or set the clocks'],
  [/ALTNAME_INVALID/, 'use a host that is in its certificate, or tls.serverName'],
  [
    /ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|no whole answer|no connection within/,
    'check host and port, and NetworkPolicies',
  ],
];

const FRONT = 'look at the proxy or gateway in front of the provider';
const OF_ANSWERS: Advice = [
  [/issuerUrl has to be/, 'set issuerUrl to what the provider calls itself'],
  [/names (no|the) token_endpoint/, 'set tokenUrl, or have the provider correct its metadata'],
  [
    /no metadata of the issuer|^the metadata at .* is no JSON/,
    'check issuerUrl, or set tokenUrl for a provider that publishes no metadata',
  ],
  [/^status 3\d\d/, 'set the URL that it leads to: secrets do not follow redirects'],
  [/^status (404|405)/, "check the URL's path and the realm"],
  [/status 429|status 5\d\d/, 'look at the provider'],
  [
    /with an empty body|where a JSON object/,
    "check the URL's path, and whether a login page or proxy answers",
  ],
  [/^status (400|2\d\d)/, FRONT],
  [/^an answer of more than/, "check the URL's path: no token endpoint answers so much"],
  [/^not an HTTP answer/, 'check scheme and port of the URL'],
  [/Content-Encoding/, FRONT],
  [/^access_token is missing/, "check the URL's path: a token endpoint answers with an access_token"],
  [/^access_token is longer/, 'have the provider put less into the token, such as groups and roles'],
  [
    /^token_type is .*, not DPoP/,
    "have the provider bind the client's tokens, or set dpop.allowBearer: true to take them as they are",
  ],
  [/^token_type is DPoP/, 'set proofOfPossession: dpop'],
  [/^token_type is .* proof/, 'have the provider issue Bearer tokens to the client'],
  [
    /exp is past by the answer's/,
    "look at the provider's clock, and at the life of the client's tokens there",
  ],
  [
    /exp of the token itself is past/,
    "compare the node's clock with the provider's, and raise the life of the client's tokens there",
  ],
  [/^expires_in is/, "if it stays so, raise the life of the client's tokens there"],
];

export function connectionRemedy(detail: string): string | undefined {
  return firstFor(detail, OF_CONNECTIONS);
}

function firstFor(detail: string, advice: Advice): string | undefined {
  return advice.find(([pattern]) => pattern.test(detail))?.[1];
}
