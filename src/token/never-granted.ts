/** Why a credential has never had a token, as whoever reads `kubectl describe pod` wants it: what, where, what to do. */

import type { CredentialConfig } from '../config/config.ts';
import type { TokenSnapshot } from './token-source.ts';

export interface NeverGranted {
  /** Of the table in errors.ts; its exit status is the process's. */
  readonly code: 'configuration' | 'credentials_rejected' | 'provider_unavailable';
  /** One sentence, without a secret. */
  readonly message: string;
}

/** Errors of TLS by which a certificate is refused, as OpenSSL and Node name them. */
const UNTRUSTED = /SELF_SIGNED|UNABLE_TO_(GET_ISSUER|VERIFY)|CERT_UNTRUSTED|INVALID_CA|ISSUER_CERT/;

/** What mends a failure, by its detail; the first that fits. */
const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [/ENOTFOUND|EAI_AGAIN/, "check the host's name and the pod's DNS"],
  [UNTRUSTED, 'let the sidecar trust the authority that signed its certificate'],
  [/CERT_HAS_EXPIRED|CERT_NOT_YET_VALID/, "renew the provider's certificate, or set the clocks"],
  [/ALTNAME_INVALID/, "use a host that is in the provider's certificate"],
  [
    /ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|no whole answer/,
    'check host and port, and NetworkPolicies',
  ],
  [/status (404|405)/, "check the URL's path and the realm"],
  [/status 429|status 5\d\d/, 'look at the provider'],
];

/** @param config of the credential that the snapshot shows. Undefined when it has had a token. */
export function whyNeverGranted(
  { name, tokenUrl, directory }: Pick<CredentialConfig, 'name' | 'tokenUrl' | 'directory'>,
  { obtainedFirstToken, credentials, lastFailure }: TokenSnapshot,
): NeverGranted | undefined {
  if (obtainedFirstToken) return undefined;
  const where = withoutQuery(tokenUrl);
  if (credentials.detail !== undefined) {
    return {
      code: 'configuration',
      message: `credential ${name}: no token was asked of ${where}, because ${credentials.detail}: mend the Secret that is mounted at ${directory}`,
    };
  }
  if (lastFailure?.result === 'rejected') {
    return {
      code: 'credentials_rejected',
      message: `credential ${name}: ${where} rejected the client (${lastFailure.detail}): compare the Secret that is mounted at ${directory} with the client there`,
    };
  }
  const failure = lastFailure?.detail ?? 'it has not answered yet';
  const remedy = REMEDIES.find(([pattern]) => pattern.test(failure))?.[1];
  return {
    code: 'provider_unavailable',
    message: `credential ${name}: ${where} gave no token (${failure}): ${remedy ?? 'check that it is the URL of a token endpoint, and that the pod may reach it'}`,
  };
}

function withoutQuery(text: string): string {
  const { origin, pathname } = new URL(text);
  return `${origin}${pathname}`;
}
