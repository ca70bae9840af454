/** Where a credential's tokens are requested, and with which configured parameters. */

import { isLoopbackHost } from '../platform/net/address.ts';
import type { Problem } from '../platform/problems.ts';
import type { CredentialConfig, GrantConfig, ProviderAddress } from './config.ts';
import type { CredentialEntry } from './credential-schema.ts';
import type { ProxyValues } from './proxy-settings.ts';
import { readValue } from './settings.ts';
import { oneOf, serverUrl, tokenEndpointUrl } from './values.ts';

/** Stands for the credential that is not in the file; messages name its settings by their variables. */
export const MADE_UP_KEY = 'environment';

/** The token endpoint of every service account (accounts.google.com/.well-known/openid-configuration). */
const GOOGLE = 'https://oauth2.googleapis.com/token';

/** Other settings that would name a provider, or a credential with one. */
const INSTEAD_OF_VARIABLES = ['credentials', 'TOKEN_SIDECAR_CONFIG', 'TOKEN_SIDECAR_TOKEN_URL'];

type Way = 'tokenUrl' | 'issuerUrl' | 'authUrl';

/** One setting that names the provider: its way, the key that names it in messages, and its text. */
interface Said {
  readonly way: Way;
  readonly key: string;
  readonly text: string;
}

/** Undefined if no setting names a provider, or none is understood; either has been reported. */
export function resolveProvider(
  key: string,
  entry: CredentialEntry,
  grant: GrantConfig | undefined,
  given: ProxyValues,
  problems: Problem[],
): ProviderAddress | undefined {
  if (grant?.type === 'static') return {};
  const inFile = soleWay(saidInFile(key, entry), problems);
  const said = soleWay(saidOutside(given), problems) ?? inFile;
  if (said === undefined && grant?.type === 'jwt_bearer' && grant.kind === 'google_service_account') {
    refuseRealm(key, entry, 'nothing without authUrl', problems);
    return { tokenUrl: GOOGLE };
  }
  if (said === undefined) {
    const name = key === MADE_UP_KEY ? 'TOKEN_SIDECAR_AUTH_URL' : `${key}.authUrl`;
    problems.push({
      key: name,
      expected: 'the URL of the identity provider, or a whole token URL',
      instead: key === MADE_UP_KEY ? INSTEAD_OF_VARIABLES : [`${key}.tokenUrl`, `${key}.issuerUrl`],
    });
    return undefined;
  }
  // If a flag overrides the file, the file's realm belongs to the overridden setting.
  if (said === inFile && said.way !== 'authUrl') {
    refuseRealm(key, entry, `nothing beside ${said.way}, which names the realm`, problems);
  }
  const base = readValue(said, said.way === 'tokenUrl' ? tokenEndpointUrl : serverUrl, problems);
  if (base === undefined) return undefined;
  const insecure = given['allow-insecure-token-url'];
  const permitted = readValue(insecure, oneOf(['true', 'false']), problems);
  // A value that was not understood may have been a permission.
  const mayBeInsecure =
    (insecure !== undefined && permitted !== 'false') || entry.allowInsecureTokenUrl === true;
  if (base.protocol === 'http:' && !isLoopbackHost(base.hostname) && !mayBeInsecure) {
    problems.push({
      key: said.key,
      value: said.text,
      expected:
        'https, because the client proves itself and receives tokens there; --allow-insecure-token-url (allowInsecureTokenUrl in the file) permits http',
      code: 'insecure_token_url',
    });
  }
  switch (said.way) {
    case 'tokenUrl':
      checkQuery(said.key, said.text, problems);
      return { tokenUrl: said.text };
    case 'issuerUrl':
      return { issuerUrl: said.text, ...(mayBeInsecure ? { permitsClearText: true } : {}) };
    case 'authUrl':
      return { tokenUrl: realmTokenUrl(said.text, given.realm?.text ?? entry.realm ?? 'dx') };
  }
}

function refuseRealm(key: string, { realm }: CredentialEntry, expected: string, problems: Problem[]): void {
  if (realm === undefined) return;
  problems.push({ key: `${key}.realm`, value: realm, expected, code: 'conflicting_settings' });
}

/** Keycloak's layout of realms. */
function realmTokenUrl(authUrl: string, realm: string): string {
  return `${authUrl.replace(/\/+$/, '')}/realms/${encodeURIComponent(realm)}/protocol/openid-connect/token`;
}

function saidOutside(given: ProxyValues): Said[] {
  const ways = [
    { way: 'tokenUrl', given: given['token-url'] },
    { way: 'authUrl', given: given['auth-url'] },
  ] as const;
  return ways.flatMap(({ way, given: value }) => (value === undefined ? [] : [{ way, ...value }]));
}

function saidInFile(key: string, entry: CredentialEntry): Said[] {
  const ways = ['tokenUrl', 'issuerUrl', 'authUrl'] as const;
  return ways.flatMap((way) => {
    const text = entry[way];
    return text === undefined ? [] : [{ way, key: `${key}.${way}`, text }];
  });
}

/** The first of several; each other is a mistake. */
function soleWay(ways: readonly Said[], problems: Problem[]): Said | undefined {
  const [first, ...others] = ways;
  if (first === undefined) return undefined;
  for (const { key } of others) {
    const name = first.key.split('.').at(-1);
    problems.push({
      key,
      expected: `nothing beside ${name}: give one of the two`,
      code: 'conflicting_settings',
    });
  }
  return first;
}

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
function checkQuery(key: string, tokenUrl: string, problems: Problem[]): void {
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
