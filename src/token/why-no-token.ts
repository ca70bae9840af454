/** Why there is no token, for the person who has to mend it. */

import type { CredentialSettings, ProviderAddress } from '../config/config.ts';
import { redactedUrl } from '../platform/log/redacted-text.ts';
import { REFUSALS } from './broker-protocol.ts';
import type { TokenSnapshot } from './grant-report.ts';
import type { FailedTokenRequest } from './token-state.ts';

type NoTokenCode = 'configuration' | 'credentials_rejected' | 'provider_unavailable';

interface TokenFailure {
  readonly code: NoTokenCode;
  /** Without a secret or the credential's name. */
  readonly message: string;
}

interface NoTokenParts {
  readonly code: NoTokenCode;
  readonly problem: string;
  readonly remedy: string;
}

interface WhatHappened {
  readonly unusable?: string | undefined;
  readonly lastFailure?: Pick<FailedTokenRequest, 'result' | 'detail'> | undefined;
}

type Remedies = readonly (readonly [RegExp, string])[];

/** Refused certificates, as OpenSSL and Node name them. */
const UNTRUSTED = /SELF_SIGNED|UNABLE_TO_(GET_ISSUER|VERIFY)|CERT_UNTRUSTED|INVALID_CA|ISSUER_CERT/;

/** The first match counts. */
const OF_CONNECTIONS: Remedies = [
  [/^the egress proxy /, 'look at egressProxy'],
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

const OF_ANSWERS: Remedies = [
  [/issuerUrl has to be/, 'set issuerUrl to what the provider calls itself'],
  [/no metadata of the issuer/, 'check issuerUrl, or set tokenUrl for a provider that publishes no metadata'],
  [/expires_in is 0/, 'ask again in a second, in case the token was at its end'],
  [/status (404|405)/, "check the URL's path and the realm"],
  [/status 429|status 5\d\d/, 'look at the provider'],
];

const OF_REFUSALS: Remedies = [
  [
    new RegExp(REFUSALS.noSuchCredential),
    "have the ClusterTokenProfile admit the pod's namespace and service account",
  ],
  [new RegExp(REFUSALS.assertionNotTaken), "look at the broker's log, which says why"],
  [/invalid_scope/, 'ask for a scope that the client may have there'],
  [/invalid_target/, 'ask for an audience or resource that the client may have there'],
  [/unauthorized_client|unsupported_grant_type/, 'allow the client the grant there'],
];

type Source = Pick<CredentialSettings, 'directory'> & ProviderAddress;

export function whyNoToken(source: Source, happened: WhatHappened): TokenFailure {
  const { code, problem, remedy } = explainNoToken(source, happened);
  return { code, message: `${problem}: ${remedy}` };
}

export function explainNoToken(
  { tokenUrl, issuerUrl, directory }: Source,
  { unusable, lastFailure }: WhatHappened,
): NoTokenParts {
  const asked = tokenUrl ?? issuerUrl;
  if (asked === undefined) return explainNoMountedToken(directory, { unusable, lastFailure });
  const where = redactedUrl(asked);
  if (unusable !== undefined) {
    return {
      code: 'configuration',
      problem: `no token was asked of ${where}, because ${unusable}`,
      remedy: `mend the Secret that is mounted at ${directory}`,
    };
  }
  if (lastFailure?.result === 'rejected') {
    return {
      code: 'credentials_rejected',
      problem: `${where} rejected the client (${lastFailure.detail})`,
      remedy:
        firstFor(lastFailure.detail, OF_REFUSALS) ??
        `compare the Secret that is mounted at ${directory} with the client there`,
    };
  }
  const failure = lastFailure?.detail ?? 'it has not answered yet';
  return {
    code: 'provider_unavailable',
    problem: `${where} gave no token (${failure})`,
    remedy:
      firstFor(failure, [...OF_CONNECTIONS, ...OF_ANSWERS]) ??
      'check that it is the URL of a token endpoint, and that the pod may reach it',
  };
}

function explainNoMountedToken(directory: string, { unusable, lastFailure }: WhatHappened): NoTokenParts {
  const why = unusable ?? lastFailure?.detail ?? 'it has not been read yet';
  return {
    code: 'configuration',
    problem: `the token that is mounted at ${directory} cannot be used (${why})`,
    remedy: 'mend the Secret',
  };
}

export function connectionRemedy(detail: string): string | undefined {
  return firstFor(detail, OF_CONNECTIONS);
}

function firstFor(detail: string, remedies: Remedies): string | undefined {
  return remedies.find(([pattern]) => pattern.test(detail))?.[1];
}

/** Undefined once there was a token. The code decides the exit status. */
export function whyNeverGranted(
  config: Pick<CredentialSettings, 'name' | 'directory'> & ProviderAddress,
  { obtainedFirstToken, credentials, lastFailure }: TokenSnapshot,
): TokenFailure | undefined {
  if (obtainedFirstToken) return undefined;
  const { code, message } = whyNoToken(config, { unusable: credentials.detail, lastFailure });
  return { code, message: `credential ${config.name}: ${message}` };
}
