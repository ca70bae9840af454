import { isIP } from 'node:net';
import { type GivenValues, readCertificatePair, readValue, type Settings } from '../config/settings.ts';
import { formats, oneOf, type ValueFormat } from '../config/values.ts';
import { objectName } from '../injector/pod/annotations.ts';
import { LOG_LEVELS, type LogLevel } from '../platform/log/logger.ts';
import { isDnsName, isLoopbackHost, type ListenAddress, withoutBrackets } from '../platform/net/address.ts';
import type { Problem } from '../platform/problems.ts';
import type { CertificateFiles } from '../platform/tls/certificate-files.ts';
import type { StoreAddress } from './cache/redis-store.ts';

const BROKER_CACHE_SETTINGS = {
  'cache-url': {
    argument: 'URL',
    description: 'Valkey or Redis in which replicas share tokens, as rediss://HOST:PORT',
  },
  'cache-key-dir': {
    argument: 'PATH',
    description:
      'Mounted Secret whose file current (32 bytes in base64) encrypts these tokens; previous only reads, while current is rotated',
  },
  'cache-auth-dir': {
    argument: 'PATH',
    description: 'Mounted Secret with the password, and perhaps the username, of Valkey or Redis',
  },
  'cache-ca-file': {
    argument: 'PATH',
    description: 'CAs in PEM of its certificate',
    default: 'the public CAs',
  },
  'cache-timeout': {
    argument: 'DURATION',
    description: 'How long it may take; then the replica asks the provider',
    default: '100ms',
  },
} as const satisfies Settings;

export const BROKER_SETTINGS = {
  listen: {
    argument: 'HOST:PORT',
    description: 'Where pods ask for tokens, over TLS',
    default: '0.0.0.0:15084',
  },
  'admin-listen': { argument: 'HOST:PORT', description: 'Probes and metrics', default: '0.0.0.0:15081' },
  'tls-cert-file': {
    argument: 'PATH',
    description: 'Serving certificate in PEM, with its chain; followed when changed',
  },
  'tls-key-file': { argument: 'PATH', description: 'Its private key in PEM, in the same directory' },
  audience: {
    argument: 'NAME',
    description: "Audience of pods' service account tokens",
    default: 'token-sidecar-broker',
  },
  kubeconfig: {
    argument: 'PATH',
    description: "Reach the API by this file, not by the pod's service account",
  },
  namespace: {
    argument: 'NAME',
    description: 'Namespace of the broker, whose Secrets and ConfigMaps profiles name',
    default: 'that of the service account or the kubeconfig',
  },
  'secrets-dir': {
    argument: 'PATH',
    description:
      'Where those Secrets are files while in use: a volume in memory, whose path has at most 88 bytes',
    default: '/var/run/token-sidecar/secrets',
  },
  ...BROKER_CACHE_SETTINGS,
  'drain-delay': {
    argument: 'DURATION',
    description: 'How long to go on serving when stopped, until nothing is sent here any more',
    default: '5s',
  },
  'drain-timeout': {
    argument: 'DURATION',
    description: 'How long requests in flight may then take',
    default: '10s',
  },
  'log-level': { argument: 'LEVEL', description: `One of ${LOG_LEVELS.join(', ')}`, default: 'info' },
} as const satisfies Settings;

export interface BrokerConfig {
  readonly listen: ListenAddress;
  readonly adminListen: ListenAddress;
  /** Missing only if `problems` says why. */
  readonly certificate?: CertificateFiles;
  readonly audience: string;
  readonly kubeconfig?: string;
  readonly namespace?: string;
  readonly secretsDirectory: string;
  /** If absent, each replica requests its own tokens. */
  readonly cache?: BrokerCacheConfig;
  readonly drainDelayMs: number;
  readonly drainTimeoutMs: number;
  readonly logLevel: LogLevel;
}

type Given = GivenValues<typeof BROKER_SETTINGS>;

const audience: ValueFormat<string> = {
  expected: 'a name without white space',
  parse: (text) => (/^[\x21-\x7e]{1,253}$/.test(text) ? text : undefined),
};

const directory: ValueFormat<string> = {
  expected: 'an absolute path',
  parse: (text) => (text.startsWith('/') ? text : undefined),
};

/** Mistakes are added to `problems`. */
export function readBrokerConfig(given: Given, problems: Problem[]): BrokerConfig {
  const certificate = readCertificate(given, problems);
  const namespace = readValue(given.namespace, objectName, problems);
  const cache = readBrokerCache(given, problems);
  return {
    listen: readValue(given.listen, formats.listenAddress, problems) ?? { host: '0.0.0.0', port: 15_084 },
    adminListen: readValue(given['admin-listen'], formats.listenAddress, problems) ?? {
      host: '0.0.0.0',
      port: 15_081,
    },
    ...(certificate === undefined ? {} : { certificate }),
    audience: readValue(given.audience, audience, problems) ?? 'token-sidecar-broker',
    ...(given.kubeconfig === undefined ? {} : { kubeconfig: given.kubeconfig.text }),
    ...(namespace === undefined ? {} : { namespace }),
    secretsDirectory:
      readValue(given['secrets-dir'], directory, problems) ?? '/var/run/token-sidecar/secrets',
    ...(cache === undefined ? {} : { cache }),
    drainDelayMs: readValue(given['drain-delay'], formats.duration, problems) ?? 5000,
    drainTimeoutMs: readValue(given['drain-timeout'], formats.duration, problems) ?? 10_000,
    logLevel: readValue(given['log-level'], oneOf(LOG_LEVELS), problems) ?? 'info',
  };
}

function readCertificate(given: Given, problems: Problem[]): CertificateFiles | undefined {
  const [certFile, keyFile] = [given['tls-cert-file'], given['tls-key-file']];
  if (certFile === undefined || keyFile === undefined) {
    const expected = 'the path of a PEM file: tokens are given over TLS alone';
    if (certFile === undefined) problems.push({ key: '--tls-cert-file', expected });
    if (keyFile === undefined) problems.push({ key: '--tls-key-file', expected });
    return undefined;
  }
  return readCertificatePair(certFile, keyFile, problems);
}

type GivenCache = GivenValues<typeof BROKER_CACHE_SETTINGS>;

interface BrokerCacheConfig {
  readonly address: StoreAddress;
  readonly keyDirectory: string;
  readonly authDirectory?: string | undefined;
  readonly caFile?: string | undefined;
  readonly timeoutMs: number;
}

const DEFAULT_PORT = 6379;

const cacheUrl: ValueFormat<StoreAddress> = {
  expected:
    'rediss://HOST or rediss://HOST:PORT, without a user, a path or a query; redis:// of a loopback address alone',
  parse(text) {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url === undefined || !/^rediss?:\/\/[^/?#@\s]+$/.test(text)) return undefined;
    // URL keeps the case of hosts in unknown schemes.
    const host = withoutBrackets(url.hostname).toLowerCase();
    const tls = url.protocol === 'rediss:';
    if (isIP(host) === 0 && !isDnsName(host)) return undefined;
    if (url.port === '0' || (!tls && !isLoopbackHost(host))) return undefined;
    return { host, port: url.port === '' ? DEFAULT_PORT : Number(url.port), tls };
  },
};

const timeout: ValueFormat<number> = {
  expected: 'a duration from 10ms to 2s',
  parse(text) {
    const ms = formats.duration.parse(text);
    return ms !== undefined && ms >= 10 && ms <= 2000 ? ms : undefined;
  },
};

/** Mistakes are added to `problems`. */
function readBrokerCache(given: GivenCache, problems: Problem[]): BrokerCacheConfig | undefined {
  const { 'cache-url': url, 'cache-key-dir': keys, 'cache-ca-file': caFile } = given;
  const auth = given['cache-auth-dir'];
  if (url === undefined) {
    for (const alone of [keys, auth, caFile, given['cache-timeout']]) {
      if (alone !== undefined) problems.push({ key: alone.key, expected: '--cache-url beside it' });
    }
    return undefined;
  }
  const address = readValue(url, cacheUrl, problems);
  const timeoutMs = readValue(given['cache-timeout'], timeout, problems) ?? 100;
  if (caFile !== undefined && address?.tls === false) {
    problems.push({ key: caFile.key, value: caFile.text, expected: `no CAs with ${url.key} redis://` });
  }
  if (keys === undefined) {
    problems.push({
      key: '--cache-key-dir',
      expected: `a directory with the file current beside ${url.key}: tokens lie there encrypted alone`,
    });
  }
  if (address === undefined || keys === undefined) return undefined;
  return { address, keyDirectory: keys.text, authDirectory: auth?.text, caFile: caFile?.text, timeoutMs };
}
