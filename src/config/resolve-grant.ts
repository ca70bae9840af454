import type { Problem } from '../platform/problems.ts';
import type { GrantConfig, JwtBearerGrant } from './config.ts';
import type { CredentialEntry } from './credential-schema.ts';

type Grant = NonNullable<CredentialEntry['grant']>;
type Kind = JwtBearerGrant['kind'];
type JwtBearerEntry = NonNullable<CredentialEntry['jwtBearer']>;

export const DEFAULT_GRANT: Grant = 'client_credentials';

/** With another grant they are mistakes. */
const GRANT_SETTINGS = [
  { name: 'jwtBearer', grant: 'jwt_bearer' },
  { name: 'tokenExchange', grant: 'token_exchange' },
  { name: 'static', grant: 'static' },
] as const;

/** For the kinds of jwt_bearer. All have a key file. */
const KIND_SETTINGS: Readonly<Record<Exclude<keyof JwtBearerEntry, 'kind' | 'keyFile'>, readonly Kind[]>> = {
  certificateFile: ['rfc7523'],
  keyId: ['rfc7523'],
  algorithm: ['rfc7523'],
  issuer: ['rfc7523', 'github_app'],
  subject: ['rfc7523', 'google_service_account'],
  audience: ['rfc7523', 'google_service_account'],
  claims: ['rfc7523'],
  repositories: ['github_app'],
  permissions: ['github_app'],
};

/** A mounted token has no use for them. */
const OF_REQUESTS = [
  'authUrl',
  'realm',
  'tokenUrl',
  'issuerUrl',
  'clientId',
  'clientAuth',
  'scope',
  'audience',
  'parameters',
  'tokenType',
  'proofOfPossession',
  'dpop',
  'tls',
  'egressProxy',
] as const satisfies readonly (keyof CredentialEntry)[];

/** GitHub's way is not OAuth. */
const OF_OAUTH = [
  'scope',
  'audience',
  'parameters',
  'issuerUrl',
  'tokenType',
  'proofOfPossession',
  'dpop',
] as const satisfies readonly (keyof CredentialEntry)[];

/** Undefined for client credentials. @param key for messages. */
export function resolveGrant(
  key: string,
  entry: CredentialEntry,
  problems: Problem[],
): GrantConfig | undefined {
  const grant = entry.grant ?? DEFAULT_GRANT;
  for (const setting of GRANT_SETTINGS) {
    if (entry[setting.name] === undefined || setting.grant === grant) continue;
    problems.push({
      key: `${key}.${setting.name}`,
      expected: `nothing with grant ${grant}: it belongs to ${setting.grant}`,
      code: 'setting_without_use',
    });
  }
  switch (grant) {
    case 'client_credentials':
      return undefined;
    case 'jwt_bearer':
      return resolveJwtBearer(key, entry, problems);
    case 'token_exchange': {
      const { subjectTokenFrom = 'file', subjectTokenFile = 'subject_token' } = entry.tokenExchange ?? {};
      const ofRequests = subjectTokenFrom === 'request';
      const { subjectTokenType = ofRequests ? 'access_token' : 'jwt' } = entry.tokenExchange ?? {};
      if (ofRequests && entry.tokenExchange?.subjectTokenFile !== undefined) {
        problems.push({
          key: `${key}.tokenExchange.subjectTokenFile`,
          value: subjectTokenFile,
          expected: 'nothing with subjectTokenFrom: request',
        });
      }
      if (ofRequests && entry.output !== undefined) {
        problems.push({
          key: `${key}.output`,
          expected: 'nothing with tokenExchange.subjectTokenFrom: request: tokens belong to requests',
          code: 'conflicting_settings',
        });
      }
      const { actorTokenFile, actorTokenType, requestedTokenType } = entry.tokenExchange ?? {};
      if (actorTokenFile === undefined && actorTokenType !== undefined) {
        problems.push({
          key: `${key}.tokenExchange.actorTokenType`,
          value: actorTokenType,
          expected: 'nothing without actorTokenFile',
          code: 'setting_without_use',
        });
      }
      return {
        type: grant,
        ...(ofRequests ? {} : { subjectTokenFile }),
        subjectTokenType: tokenTypeUri(subjectTokenType),
        ...(actorTokenFile === undefined
          ? {}
          : { actorTokenFile, actorTokenType: tokenTypeUri(actorTokenType ?? 'jwt') }),
        ...(requestedTokenType === undefined ? {} : { requestedTokenType: tokenTypeUri(requestedTokenType) }),
      };
    }
    case 'static':
      for (const name of OF_REQUESTS) {
        if (entry[name] === undefined) continue;
        problems.push({
          key: `${key}.${name}`,
          expected: 'nothing with grant static: nobody is asked for the token',
          code: 'setting_without_use',
        });
      }
      return { type: grant, tokenFile: entry.static?.tokenFile ?? 'token' };
  }
}

function resolveJwtBearer(key: string, entry: CredentialEntry, problems: Problem[]): JwtBearerGrant {
  const settings: JwtBearerEntry = entry.jwtBearer ?? {};
  const { kind = 'rfc7523', claims = {}, ...others } = settings;
  for (const [name, kinds] of Object.entries(KIND_SETTINGS)) {
    if (settings[name as keyof JwtBearerEntry] === undefined || kinds.includes(kind)) continue;
    problems.push({
      key: `${key}.jwtBearer.${name}`,
      expected: `nothing with kind ${kind}: it belongs to ${kinds.join(' and ')}`,
      code: 'setting_without_use',
    });
  }
  if (kind !== 'rfc7523' && entry.clientAuth !== undefined && entry.clientAuth !== 'none') {
    problems.push({
      key: `${key}.clientAuth`,
      value: entry.clientAuth,
      expected: `none with jwtBearer.kind ${kind}, whose key is the proof`,
      code: 'conflicting_settings',
    });
  }
  for (const name of Object.keys(claims)) {
    if (!OWN_CLAIMS.includes(name)) continue;
    problems.push({
      key: `${key}.jwtBearer.claims.${name}`,
      expected: 'a claim that is not made by the sidecar itself',
      code: 'reserved_parameter',
    });
  }
  const { keyFile } = settings;
  switch (kind) {
    case 'rfc7523': {
      const { repositories: _, permissions: __, ...own } = others;
      return withoutUndefined({
        ...own,
        type: 'jwt_bearer',
        kind,
        keyFile: keyFile ?? 'private_key',
        claims,
      });
    }
    case 'google_service_account': {
      if (entry.scope === undefined) {
        problems.push({
          key: `${key}.scope`,
          expected: 'scopes, by spaces, such as https://www.googleapis.com/auth/cloud-platform',
        });
      }
      const { subject, audience } = settings;
      const grant = { type: 'jwt_bearer', kind, keyFile: keyFile ?? 'key.json', subject, audience } as const;
      return withoutUndefined(grant);
    }
    case 'github_app': {
      for (const name of OF_OAUTH) {
        if (entry[name] === undefined) continue;
        problems.push({
          key: `${key}.${name}`,
          expected: 'nothing with jwtBearer.kind github_app',
          code: 'setting_without_use',
        });
      }
      const { issuer, repositories, permissions } = settings;
      const own = { issuer, repositories, permissions };
      return withoutUndefined({ ...own, type: 'jwt_bearer', kind, keyFile: keyFile ?? 'private_key' });
    }
  }
}

/** They say who, for whom and when. */
const OWN_CLAIMS = ['iss', 'sub', 'aud', 'jti', 'iat', 'nbf', 'exp'];

/** Expands short names (RFC 8693 §3). */
function tokenTypeUri(type: string): string {
  return type.includes(':') ? type : `urn:ietf:params:oauth:token-type:${type}`;
}

type Defined<T> = { [Key in keyof T]: Exclude<T[Key], undefined> };

function withoutUndefined<T extends object>(settings: T): Defined<T> {
  const kept = Object.entries(settings).filter(([, value]) => value !== undefined);
  return Object.fromEntries(kept) as Defined<T>;
}
