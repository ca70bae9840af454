import { type GivenValue, type GivenValues, readValue, type Settings } from '../config/settings.ts';
import { formats, oneOf, type ValueFormat } from '../config/values.ts';
import { LOG_LEVELS, type LogLevel, ONE_OF_LOG_LEVELS } from '../platform/log/logger.ts';
import type { ListenAddress } from '../platform/net/address.ts';
import type { Problem } from '../platform/problems.ts';
import { tokenLifetime } from './clients.ts';
import { SIGNING_ALGORITHMS, type SigningAlgorithm } from './keys.ts';

export const ISSUER_SETTINGS = {
  listen: {
    argument: 'HOST:PORT',
    description: 'Where the token endpoint listens',
    default: '0.0.0.0:15090',
  },
  'admin-listen': {
    argument: 'HOST:PORT',
    description: 'Where probes, metrics and the JWKS are served',
    default: '0.0.0.0:15091',
  },
  'auth-url': {
    argument: 'URL',
    description: 'Public base URL, part of the iss claim; its path is served',
    default: 'that of the listener',
  },
  'admin-url': {
    argument: 'URL',
    description: 'Where others reach the admin listener, for the jwks_uri of the discovery documents',
    default: 'that of the admin listener',
  },
  realm: { argument: 'NAME', description: 'Realm', default: 'dx' },
  'clients-file': { argument: 'PATH', description: 'The registered clients, as YAML' },
  'clients-dir': {
    argument: 'PATH',
    description:
      'The registered clients, instead of a file: one subdirectory a client, each a mounted Secret',
  },
  'signing-key-file': {
    argument: 'PATH',
    description: 'Private key in PEM that signs the tokens; without it one is made at start',
  },
  'published-keys-dir': {
    argument: 'PATH',
    description: 'Further keys for the JWKS, as *.pem files: the next one, former ones whose tokens live',
  },
  'signing-alg': {
    argument: 'ALG',
    description: `One of ${SIGNING_ALGORITHMS.join(', ')}`,
    default: 'ES256',
  },
  'token-lifetime': {
    argument: 'DURATION',
    description: 'Lifetime of the tokens of clients without their own',
    default: '300s',
  },
  'dpop-nonces': {
    argument: 'BOOLEAN',
    description: 'Demand a nonce in DPoP proofs',
    default: 'false',
  },
  'drain-timeout': {
    argument: 'DURATION',
    description: 'How long requests in flight may take when it is stopped',
    default: '10s',
  },
  'log-level': { argument: 'LEVEL', description: ONE_OF_LOG_LEVELS, default: 'info' },
} as const satisfies Settings;

export interface IssuerConfig {
  readonly listen: ListenAddress;
  readonly adminListen: ListenAddress;
  readonly authUrl?: URL;
  readonly adminUrl?: URL;
  readonly realm: string;
  /** Missing only if `problems` says why. */
  readonly clients?: GivenPath & { readonly kind: 'file' | 'directory' };
  readonly signingKeyFile?: GivenPath;
  readonly publishedKeysDirectory?: GivenPath;
  readonly signingAlgorithm: SigningAlgorithm;
  readonly tokenLifetimeSeconds: number;
  readonly demandsNonces: boolean;
  readonly drainTimeoutMs: number;
  readonly logLevel: LogLevel;
}

interface GivenPath {
  readonly path: string;
  /** For messages. */
  readonly key: string;
}

const realmName: ValueFormat<string> = {
  expected: 'a realm name of letters, digits, ".", "_" and "-"',
  parse: (text) => (isRealmName(text) ? text : undefined),
};

/** A mistake is added to `problems` and replaced by the default, so that the files can be checked too. */
export function readIssuerConfig(
  given: GivenValues<typeof ISSUER_SETTINGS>,
  problems: Problem[],
): IssuerConfig {
  const authUrl = readValue(given['auth-url'], formats.serverUrl, problems);
  const adminUrl = readValue(given['admin-url'], formats.serverUrl, problems);
  const clients = readClientsPath(given['clients-file'], given['clients-dir'], problems);
  const keyFile = given['signing-key-file'];
  const published = given['published-keys-dir'];
  return {
    listen: readValue(given['listen'], formats.listenAddress, problems) ?? { host: '0.0.0.0', port: 15090 },
    adminListen: readValue(given['admin-listen'], formats.listenAddress, problems) ?? {
      host: '0.0.0.0',
      port: 15091,
    },
    ...(authUrl === undefined ? {} : { authUrl }),
    ...(adminUrl === undefined ? {} : { adminUrl }),
    ...(clients === undefined ? {} : { clients }),
    realm: readValue(given['realm'], realmName, problems) ?? 'dx',
    ...(keyFile === undefined ? {} : { signingKeyFile: { path: keyFile.text, key: keyFile.key } }),
    ...(published === undefined
      ? {}
      : { publishedKeysDirectory: { path: published.text, key: published.key } }),
    signingAlgorithm: readValue(given['signing-alg'], oneOf(SIGNING_ALGORITHMS), problems) ?? 'ES256',
    tokenLifetimeSeconds: readValue(given['token-lifetime'], tokenLifetime, problems) ?? 300,
    demandsNonces: readValue(given['dpop-nonces'], oneOf(['true', 'false']), problems) === 'true',
    drainTimeoutMs: readValue(given['drain-timeout'], formats.duration, problems) ?? 10_000,
    logLevel: readValue(given['log-level'], oneOf(LOG_LEVELS), problems) ?? 'info',
  };
}

function readClientsPath(
  file: GivenValue | undefined,
  directory: GivenValue | undefined,
  problems: Problem[],
): IssuerConfig['clients'] {
  if (file !== undefined && directory === undefined) return { kind: 'file', path: file.text, key: file.key };
  if (directory !== undefined && file === undefined) {
    return { kind: 'directory', path: directory.text, key: directory.key };
  }
  const both = file !== undefined && directory !== undefined;
  problems.push({
    key: both ? directory.key : '--clients-file',
    expected: both ? `either this or ${file.key}, not both` : 'either this or --clients-dir',
  });
  return undefined;
}

/** Needs no escaping in a path or a quoted string. */
function isRealmName(text: string): boolean {
  return /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/.test(text);
}
