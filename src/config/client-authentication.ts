/**
 * Settings of client authentication. What a method reads, sends and is called is a row in
 * `src/token/client/client-authentication.ts`. A new key is listed in `credential-schema.ts`, for profiles in
 * `src/injector/profiles/profile-schema.ts`, and to be shown in `src/sidecar/status/configuration.ts`.
 */

import * as v from 'valibot';
import { redactedUrl } from '../platform/log/redacted-text.ts';
import type { Problem } from '../platform/problems.ts';
import type { AssertionAlgorithm, GrantConfig, ProviderAddress } from './config.ts';
import { field, words } from './value-schemas.ts';

/** Files are names in the credential's directory. */
export type ClientAuthentication =
  | { readonly method: 'client_secret_basic'; readonly encoding: 'form' | 'raw' }
  | { readonly method: 'client_secret_post' }
  | PrivateKeyJwt
  | { readonly method: 'tls_client_auth' }
  | { readonly method: 'kubernetes_jwt'; readonly tokenFile: string }
  /** The grant itself is proof enough. */
  | { readonly method: 'none' };

export interface PrivateKeyJwt {
  readonly method: 'private_key_jwt';
  /** PEM or JWK. */
  readonly keyFile: string;
  /** PEM. Its thumbprint names the key. */
  readonly certificateFile?: string;
  /** By default the JWK's own, or the key's thumbprint. */
  readonly keyId?: string;
  /** By default the JWK's own, or the usual one for the key. */
  readonly algorithm?: AssertionAlgorithm;
  /** `aud`; the token endpoint's URL by default. */
  readonly audience?: string;
}

type MethodName = ClientAuthentication['method'];

interface Method<M extends MethodName> {
  /** With another method they are mistakes. */
  readonly settings: Readonly<Record<string, (entry: Entry) => string | undefined>>;
  resolve(entry: Entry): Extract<ClientAuthentication, { readonly method: M }>;
  /** Says what would be right instead. */
  misfit?(use: Use): string | undefined;
}

interface Use {
  readonly grant: 'client_credentials' | GrantConfig['type'];
  readonly provider: ProviderAddress | undefined;
}

const METHODS: { readonly [M in MethodName]: Method<M> } = {
  client_secret_basic: {
    settings: { basicEncoding: ({ basicEncoding }) => basicEncoding },
    resolve: ({ basicEncoding = 'form' }) => ({ method: 'client_secret_basic', encoding: basicEncoding }),
  },
  client_secret_post: { settings: {}, resolve: () => ({ method: 'client_secret_post' }) },
  private_key_jwt: {
    settings: {
      'assertion.keyFile': ({ assertion }) => assertion?.keyFile,
      'assertion.certificateFile': ({ assertion }) => assertion?.certificateFile,
      'assertion.algorithm': ({ assertion }) => assertion?.algorithm,
      'assertion.keyId': ({ assertion }) => assertion?.keyId,
      'assertion.audience': ({ assertion }) => assertion?.audience,
    },
    resolve({ assertion: { keyFile = 'private_key', certificateFile, keyId, algorithm, audience } = {} }) {
      return {
        method: 'private_key_jwt',
        keyFile,
        ...(certificateFile === undefined ? {} : { certificateFile }),
        ...(keyId === undefined ? {} : { keyId }),
        ...(algorithm === undefined ? {} : { algorithm }),
        ...(audience === undefined ? {} : { audience }),
      };
    },
  },
  tls_client_auth: {
    settings: {},
    resolve: () => ({ method: 'tls_client_auth' }),
    misfit({ provider }) {
      const url = provider?.tokenUrl ?? provider?.issuerUrl;
      if (url === undefined || new URL(url).protocol !== 'http:') return undefined;
      const whose = provider?.issuerUrl === undefined ? 'token endpoint' : 'issuer';
      return `a method that works over http, or an https ${whose} instead of ${redactedUrl(url)}`;
    },
  },
  kubernetes_jwt: {
    settings: { 'assertion.tokenFile': ({ assertion }) => assertion?.tokenFile },
    resolve: ({ assertion }) => ({ method: 'kubernetes_jwt', tokenFile: assertion?.tokenFile ?? 'token' }),
  },
  none: {
    settings: {},
    resolve: () => ({ method: 'none' }),
    misfit: ({ grant }) =>
      grant === 'client_credentials'
        ? 'a method that proves the client: with grant client_credentials nothing else does'
        : undefined,
  },
};

const METHOD_NAMES = Object.keys(METHODS) as MethodName[];

const DEFAULT_METHOD: MethodName = 'client_secret_basic';

/** These grants carry a proof of their own. */
const SELF_PROVING: ReadonlySet<string> = new Set(['jwt_bearer', 'static']);

/** @param key names the entry in messages. */
export function resolveClientAuthentication(
  key: string,
  entry: Entry,
  use: Use,
  problems: Problem[],
): ClientAuthentication {
  const name = entry.clientAuth ?? (SELF_PROVING.has(use.grant) ? 'none' : DEFAULT_METHOD);
  for (const owner of METHOD_NAMES) {
    if (owner === name) continue;
    for (const [setting, read] of Object.entries(METHODS[owner].settings)) {
      const value = read(entry);
      if (value === undefined) continue;
      problems.push({
        key: `${key}.${setting}`,
        value,
        expected: `nothing with clientAuth ${name}: it belongs to ${owner}`,
        code: 'setting_without_use',
      });
    }
  }
  const method = METHODS[name];
  const expected = method.misfit?.(use);
  if (expected !== undefined) problems.push({ key: `${key}.clientAuth`, value: name, expected });
  return method.resolve(entry);
}

const ASSERTION_ALGORITHMS = [
  'ES256',
  'ES384',
  'ES512',
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'EdDSA',
] as const satisfies readonly AssertionAlgorithm[];

export const assertionAlgorithm = words(ASSERTION_ALGORITHMS);

export const clientAuthenticationSettings = {
  clientAuth: v.optional(words(METHOD_NAMES)),
  assertion: v.optional(
    v.strictObject(
      {
        keyFile: v.optional(field.fileName),
        certificateFile: v.optional(field.fileName),
        keyId: v.optional(field.text),
        algorithm: v.optional(assertionAlgorithm),
        audience: v.optional(field.text),
        tokenFile: v.optional(field.fileName),
      },
      'a mapping',
    ),
  ),
  basicEncoding: v.optional(words(['form', 'raw'])),
};

type Entry = v.InferOutput<v.ObjectSchema<typeof clientAuthenticationSettings, undefined>>;
