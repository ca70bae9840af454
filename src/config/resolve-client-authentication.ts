import { shownUrl } from '../platform/log/shown-text.ts';
import type { Problem } from '../platform/problems.ts';
import type { ClientAuthentication, ProviderAddress } from './config.ts';
import type { CredentialEntry } from './file-schema.ts';
import { DEFAULT_GRANT } from './resolve-grant.ts';

type Method = ClientAuthentication['method'];

const DEFAULT_METHOD: Method = 'client_secret_basic';

/** Grants that carry their own proof. */
const SELF_PROVING: ReadonlySet<string> = new Set(['jwt_bearer', 'static']);

interface MethodSetting {
  readonly name: string;
  readonly method: Method;
  readonly read: (entry: CredentialEntry) => string | undefined;
}

/** Settings that only one method uses: with another method they are a mistake. */
const METHOD_SETTINGS: readonly MethodSetting[] = [
  { name: 'basicEncoding', method: 'client_secret_basic', read: ({ basicEncoding }) => basicEncoding },
  { name: 'assertion.keyFile', method: 'private_key_jwt', read: ({ assertion }) => assertion?.keyFile },
  {
    name: 'assertion.certificateFile',
    method: 'private_key_jwt',
    read: ({ assertion }) => assertion?.certificateFile,
  },
  {
    name: 'assertion.algorithm',
    method: 'private_key_jwt',
    read: ({ assertion }) => assertion?.algorithm,
  },
  { name: 'assertion.keyId', method: 'private_key_jwt', read: ({ assertion }) => assertion?.keyId },
  { name: 'assertion.audience', method: 'private_key_jwt', read: ({ assertion }) => assertion?.audience },
  { name: 'assertion.tokenFile', method: 'kubernetes_jwt', read: ({ assertion }) => assertion?.tokenFile },
];

/** The method with its settings. @param key names the entry in messages. */
export function resolveClientAuthentication(
  key: string,
  entry: CredentialEntry,
  provider: ProviderAddress | undefined,
  problems: Problem[],
): ClientAuthentication {
  const url = provider?.tokenUrl ?? provider?.issuerUrl;
  const grant = entry.grant ?? DEFAULT_GRANT;
  const method = entry.clientAuth ?? (SELF_PROVING.has(grant) ? 'none' : DEFAULT_METHOD);
  for (const setting of METHOD_SETTINGS) {
    const value = setting.read(entry);
    if (value === undefined || setting.method === method) continue;
    problems.push({
      key: `${key}.${setting.name}`,
      value,
      expected: `nothing with clientAuth ${method}: it belongs to ${setting.method}`,
      code: 'setting_without_use',
    });
  }
  switch (method) {
    case 'client_secret_basic':
      return { method, encoding: entry.basicEncoding ?? 'form' };
    case 'client_secret_post':
      return { method };
    case 'private_key_jwt': {
      const { keyFile = 'private_key', certificateFile, keyId, algorithm, audience } = entry.assertion ?? {};
      return {
        method,
        keyFile,
        ...(certificateFile === undefined ? {} : { certificateFile }),
        ...(keyId === undefined ? {} : { keyId }),
        ...(algorithm === undefined ? {} : { algorithm }),
        ...(audience === undefined ? {} : { audience }),
      };
    }
    case 'tls_client_auth':
      if (url !== undefined && new URL(url).protocol === 'http:') {
        problems.push({
          key: `${key}.clientAuth`,
          value: method,
          expected: `a method that works over http, or an https ${provider?.issuerUrl === undefined ? 'token endpoint' : 'issuer'} instead of ${shownUrl(url)}`,
        });
      }
      return { method };
    case 'kubernetes_jwt':
      return { method, tokenFile: entry.assertion?.tokenFile ?? 'token' };
    case 'none':
      if (grant === 'client_credentials') {
        problems.push({
          key: `${key}.clientAuth`,
          value: method,
          expected: 'a method that proves the client: with grant client_credentials nothing else does',
        });
      }
      return { method };
  }
}
