import { isLoopbackHost } from '../platform/net/address.ts';
import type { Problem } from '../platform/problems.ts';
import { resolveClientAuthentication } from './client-authentication.ts';
import type { CredentialConfig, ForwardingPolicy, GrantConfig, ProviderAddress } from './config.ts';
import type { CredentialEntry } from './credential-schema.ts';
import { checkUnique, DEFAULT_NAME, isDoubtful, type Keyed, keyed } from './entries.ts';
import type { FileConfig } from './file-schema.ts';
import { PROXY_SETTINGS, type ProxyValues } from './proxy-settings.ts';
import { resolveRenewal } from './renewal.ts';
import { resolveEgressProxy, resolveTls, SEEN_BY_PROXY } from './resolve-forwarding.ts';
import { DEFAULT_GRANT, resolveGrant } from './resolve-grant.ts';
import { readValue } from './settings.ts';
import { didYouMean } from './suggestion.ts';
import { formats, oneOf } from './values.ts';

type CredentialUser = Keyed<{ readonly credential: string }>;

/** Flags and environment override `default`, or add it if there is none or something uses it. */
export function resolveCredentials(
  file: FileConfig,
  users: readonly CredentialUser[],
  given: ProxyValues,
  problems: Problem[],
): Keyed<CredentialConfig>[] {
  const entries = keyed<CredentialEntry>('credentials', file.credentials);
  const isUsed = users.some(({ entry }) => entry.credential === DEFAULT_NAME);
  const isGiven = (given['auth-url'] ?? given['token-url']) !== undefined;
  const isDescribed = entries.length === 0 || (isUsed && isGiven);
  const isNamed = !entries.some(({ key }) => isDoubtful(problems, key, 'name'));
  if (isDescribed && isNamed && !entries.some(({ entry }) => entry.name === DEFAULT_NAME)) {
    entries.push({ key: MADE_UP_KEY, entry: { name: DEFAULT_NAME } });
  }
  if (isNamed && !isDoubtful(problems, 'credentials')) checkEffect(entries, given, problems);
  return entries.flatMap(({ key, entry }) => {
    const overrides = entry.name === DEFAULT_NAME ? given : {};
    const tls = resolveTls(`${key}.tls`, entry.tls, problems);
    const grant = resolveGrant(key, entry, problems);
    const provider = resolveProvider(key, entry, grant, overrides, problems);
    const egressProxy = resolveEgressProxy(`${key}.egressProxy`, entry.egressProxy, problems);
    if (egressProxy !== undefined && isClear(provider)) {
      problems.push({
        key: `${key}.egressProxy`,
        expected: 'an https provider beside it: the proxy would see the secret',
        ...SEEN_BY_PROXY,
      });
    }
    const dpop = resolveDpop(key, entry, overrides['proof-of-possession'], problems);
    const output = resolveOutput(`${key}.output`, entry.output, problems);
    const clientAuth = resolveClientAuthentication(
      key,
      entry,
      { grant: entry.grant ?? DEFAULT_GRANT, provider },
      problems,
    );
    if (provider === undefined) return [];
    const scope = overrides.scope?.text ?? entry.scope;
    const audience = overrides.audience?.text ?? entry.audience;
    const resolved: CredentialConfig = {
      name: entry.name,
      ...provider,
      directory: overrides['credentials-dir']?.text ?? entry.dir ?? PROXY_SETTINGS['credentials-dir'].default,
      ...(entry.clientId === undefined ? {} : { clientId: entry.clientId }),
      clientAuth,
      ...(grant === undefined ? {} : { grant }),
      ...(entry.required === false ? { required: false as const } : {}),
      ...(output === undefined ? {} : { output }),
      ...(entry.tokenType === 'any' ? { tokenType: 'any' as const } : {}),
      ...(dpop === undefined ? {} : { dpop }),
      ...(scope === undefined ? {} : { scope }),
      ...(audience === undefined ? {} : { audience }),
      parameters: resolveParameters(`${key}.parameters`, entry.parameters ?? {}, provider, problems),
      tls,
      ...(egressProxy === undefined ? {} : { egressProxy }),
      requestTimeoutMs: entry.timeouts?.request ?? 10_000,
      waitTimeoutMs: entry.timeouts?.wait ?? 10_000,
      renewal: resolveRenewal(entry.renewal),
    };
    return [{ key, entry: resolved }];
  });
}

function isClear(provider: ProviderAddress | undefined): boolean {
  return (provider?.tokenUrl ?? provider?.issuerUrl)?.startsWith('http:') === true;
}

const OF_DEFAULT = [
  'auth-url',
  'token-url',
  'credentials-dir',
  'scope',
  'audience',
  'proof-of-possession',
] as const;

/** A flag or variable without effect is a mistake. */
function checkEffect(
  entries: readonly Keyed<CredentialEntry>[],
  given: ProxyValues,
  problems: Problem[],
): void {
  const names = entries.map(({ entry }) => entry.name);
  if (names.includes(DEFAULT_NAME)) return;
  for (const flag of OF_DEFAULT) {
    const key = given[flag]?.key;
    if (key === undefined) continue;
    const expected = `a credential named default, which it would set: the file has ${names.join(', ')}`;
    problems.push({ key, expected, code: 'ignored_setting' });
  }
}

/** Names are unique, and every name used exists. */
export function checkCredentials(
  file: FileConfig,
  credentials: readonly Keyed<CredentialConfig>[],
  users: readonly CredentialUser[],
  problems: Problem[],
): void {
  checkUnique(credentials, problems);
  // One that could not be resolved still has its name.
  const declared = keyed('credentials', file.credentials);
  if (declared.some(({ key }) => isDoubtful(problems, key, 'name')) || isDoubtful(problems, 'credentials'))
    return;
  const names = [...new Set([...declared, ...credentials].map(({ entry }) => entry.name))];
  const isDefaultMissing = declared.length > 0 && !names.includes(DEFAULT_NAME);
  for (const { key, entry } of users) {
    if (names.includes(entry.credential)) continue;
    if (entry.credential === DEFAULT_NAME) {
      // Without an entry in the file it was reported as missing in the environment.
      if (isDefaultMissing) problems.push(withoutCredential(key, names));
      continue;
    }
    problems.push({
      key: `${key}.credential`,
      value: entry.credential,
      expected: `a credential's name: ${names.join(', ')}${didYouMean(entry.credential, names)}`,
      code: 'unknown_credential',
    });
  }
}

/** @param key of an entry of the file, or of the flag or variable that names an upstream or hosts. */
function withoutCredential(key: string, names: readonly string[]): Problem {
  const [first, ...others] = names;
  const list = names.join(', ');
  const instead = ['TOKEN_SIDECAR_AUTH_URL', 'TOKEN_SIDECAR_TOKEN_URL'];
  if (!key.endsWith(']')) {
    const expected = `a credential named default beside it: the file has ${list}`;
    const remedy = 'Name a credential default, or move the setting into the file, where it can name one.';
    return { key, expected, code: 'missing_value', instead, remedy };
  }
  return {
    key: `${key}.credential`,
    expected: `the name of a credential, as none is called default: ${list}`,
    instead,
    remedy: `Write credential: ${first}${others.length === 0 ? '' : ', or another of these names'}.`,
  };
}

/** A request's own token that is exchanged must have no other use. */
export function checkSubjects(
  credentials: readonly Keyed<CredentialConfig>[],
  users: readonly Keyed<Pick<ForwardingPolicy, 'credential' | 'existingAuthorization'>>[],
  problems: Problem[],
): void {
  const exchanged = credentials.filter(
    ({ entry: { grant } }) => grant?.type === 'token_exchange' && grant.subjectTokenFile === undefined,
  );
  const names = exchanged.map(({ entry }) => entry.name);
  for (const { key, entry } of users) {
    if (!names.includes(entry.credential) || entry.existingAuthorization === 'replace') continue;
    problems.push({
      key: `${key}.existingAuthorization`,
      value: entry.existingAuthorization,
      expected: `replace: credential ${entry.credential} exchanges what the request has there`,
    });
  }
}

/** @param given a flag or variable. */
function resolveDpop(
  key: string,
  entry: CredentialEntry,
  given: ProxyValues['proof-of-possession'],
  problems: Problem[],
): CredentialConfig['dpop'] {
  const isWanted = (given?.text ?? entry.proofOfPossession) === 'dpop';
  const { keyFile, allowBearer = false } = entry.dpop ?? {};
  if (!isWanted) {
    if (entry.dpop !== undefined) {
      problems.push({
        key: `${key}.dpop`,
        expected: 'nothing without proofOfPossession: dpop',
        code: 'setting_without_use',
      });
    }
    return undefined;
  }
  // Beside the file's own setting it was reported.
  if (given !== undefined && (entry.grant === 'static' || entry.jwtBearer?.kind === 'github_app')) {
    problems.push({
      key: given.key,
      value: given.text,
      expected: `none: no token of credential ${entry.name} can be bound to a key`,
      code: 'conflicting_settings',
    });
  }
  if (entry.tokenType === 'any' && !allowBearer) {
    problems.push({
      key: `${key}.tokenType`,
      expected: 'nothing with proofOfPossession: dpop, unless dpop.allowBearer is true',
      code: 'setting_without_use',
    });
  }
  if (entry.output !== undefined) {
    problems.push({
      key: `${key}.output`,
      expected:
        'nothing with proofOfPossession: dpop: whoever got the token could not use it without the key',
      code: 'conflicting_settings',
    });
  }
  return { ...(keyFile === undefined ? {} : { keyFile }), allowsBearer: allowBearer };
}

/** A proof goes with `Authorization: DPoP` alone (RFC 9449 §7.1). */
export function checkPlaces(
  credentials: readonly Keyed<CredentialConfig>[],
  users: readonly Keyed<Pick<ForwardingPolicy, 'credential' | 'inject'>>[],
  problems: Problem[],
): void {
  const bound = new Set(
    credentials.filter(({ entry }) => entry.dpop !== undefined).map(({ entry }) => entry.name),
  );
  for (const { key, entry } of users) {
    if (entry.inject === undefined || !bound.has(entry.credential)) continue;
    problems.push({
      key: `${key}.inject`,
      expected: `nothing: tokens of credential ${entry.credential} go into Authorization, with a proof beside them`,
      code: 'conflicting_settings',
    });
  }
}

/** Readable by its owner and group. */
const DEFAULT_MODE = 0o640;

/** @param key for messages. */
function resolveOutput(
  key: string,
  entry: CredentialEntry['output'],
  problems: Problem[],
): CredentialConfig['output'] {
  if (entry === undefined) return undefined;
  const { file, mode, group, endpoint = false } = entry;
  if (file === undefined) {
    for (const [name, value] of Object.entries({ mode, group })) {
      if (value !== undefined) {
        problems.push({
          key: `${key}.${name}`,
          value: String(value),
          expected: 'nothing without file',
          code: 'setting_without_use',
        });
      }
    }
    return endpoint ? { endpoint } : undefined;
  }
  const own = { path: file, mode: mode === undefined ? DEFAULT_MODE : Number.parseInt(mode, 8) };
  return { endpoint, file: group === undefined ? own : { ...own, group } };
}

/** For flags and environment; messages name the variables. */
const MADE_UP_KEY = 'environment';

/** accounts.google.com/.well-known/openid-configuration */
const GOOGLE = 'https://oauth2.googleapis.com/token';

/** Other settings that name a provider, or a credential with one. */
const INSTEAD_OF_VARIABLES = ['credentials', 'TOKEN_SIDECAR_CONFIG', 'TOKEN_SIDECAR_TOKEN_URL'];

type Way = 'tokenUrl' | 'issuerUrl' | 'authUrl';

interface Said {
  readonly way: Way;
  readonly key: string;
  readonly text: string;
}

/** Undefined if none is named or understood; both are reported. */
function resolveProvider(
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
  // The file's realm belongs to the overridden setting.
  if (said === inFile && said.way !== 'authUrl') {
    refuseRealm(key, entry, `nothing beside ${said.way}, which names the realm`, problems);
  }
  const base = readValue(
    said,
    said.way === 'tokenUrl' ? formats.tokenEndpointUrl : formats.serverUrl,
    problems,
  );
  if (base === undefined) return undefined;
  const insecure = given['allow-insecure-token-url'];
  const permitted = readValue(insecure, oneOf(['true', 'false']), problems);
  // An unreadable setting may have been a permission.
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

/** Keycloak lays realms out like this. */
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

/** Further ones are mistakes. */
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

/** A repetition would leave the meaning to the provider. */
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

/** The query may have a provider's own type. */
const OWN_OF_QUERY = 'grant_type';

/** @param key for messages. */
function resolveParameters(
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

/** @param key of the URL. */
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
