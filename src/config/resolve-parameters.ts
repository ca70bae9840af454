/** Parameters of a grant that are configured: in the body, and in the query of the token endpoint's URL. */

import type { Problem } from '../platform/problems.ts';
import type { CredentialConfig, ProviderAddress } from './config.ts';

/** Parameters that the grant itself sets: repeating one would leave its meaning to the provider. */
const OWN_PARAMETERS = [
  'grant_type',
  'client_id',
  'client_secret',
  'client_assertion',
  'client_assertion_type',
  'assertion',
  'subject_token',
  'subject_token_type',
  'actor_token',
  'actor_token_type',
  'requested_token_type',
  'scope',
  'audience',
];

/** Of these the query may have the grant's type, in place of the one in the body: some providers have a type of their own. */
const OWN_OF_QUERY = 'grant_type';

/** @param key names the setting in messages. */
export function resolveParameters(
  key: string,
  parameters: CredentialConfig['parameters'],
  provider: ProviderAddress,
  problems: Problem[],
): CredentialConfig['parameters'] {
  const inQuery = namesIn(provider.tokenUrl);
  for (const name of Object.keys(parameters)) {
    if (OWN_PARAMETERS.includes(name)) {
      problems.push({
        key: `${key}.${name}`,
        expected: 'a parameter that has no setting of its own',
        code: 'reserved_parameter',
      });
    } else if (inQuery.has(name)) {
      // RFC 6749 §3.2: no parameter is sent twice.
      problems.push({
        key: `${key}.${name}`,
        expected: 'nothing beside the parameter of this name in the query of the token endpoint',
        code: 'conflicting_settings',
      });
    }
  }
  return parameters;
}

/** @param key names the setting that the URL was given by. */
export function checkQuery(key: string, tokenUrl: string, problems: Problem[]): void {
  for (const name of namesIn(tokenUrl)) {
    if (name === OWN_OF_QUERY || !OWN_PARAMETERS.includes(name)) continue;
    problems.push({
      key,
      value: tokenUrl,
      expected: `a query without ${name}, which is sent in another way`,
      code: 'reserved_parameter',
    });
  }
}

function namesIn(tokenUrl: string | undefined): ReadonlySet<string> {
  return new Set(tokenUrl === undefined ? [] : new URL(tokenUrl).searchParams.keys());
}
