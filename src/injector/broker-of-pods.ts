import { basename, dirname } from 'node:path';
import { type GivenValues, readValue, type Settings } from '../config/settings.ts';
import { formats, type ValueFormat } from '../config/values.ts';
import { type Logger, withoutRepeatLimit } from '../platform/log/logger.ts';
import type { DirectoryWatchOptions } from '../platform/mounted/directory-watch.ts';
import { type MountedSecret, openLiveSecret, readMountedSecret } from '../platform/mounted/mounted-secret.ts';
import { ConfigurationError, type Problem } from '../platform/problems.ts';
import { blocksOf, parseAuthorities } from '../platform/x509/pem.ts';
import { grantValue, objectName } from './pod/annotations.ts';
import { type BrokerOfPods, MAX_AUTHORITIES } from './pod/cluster.ts';

export const BROKER_OF_PODS_SETTINGS = {
  'broker-url': {
    argument: 'URL',
    description:
      'Broker for credentials with via: broker, as https://HOST:PORT; without it pods that name such a profile are refused',
  },
  'broker-ca-file': {
    argument: 'PATH',
    description: 'CAs in PEM of its certificate, for these pods; followed when changed',
    default: 'the public CAs',
  },
  'broker-ca-config-map': {
    argument: 'NAME',
    description: 'In place of the file: ConfigMap with key ca.crt in each namespace',
  },
  'broker-audience': {
    argument: 'AUDIENCE',
    description: 'Audience of the service account tokens that the broker takes',
    default: 'token-sidecar-broker',
  },
} as const satisfies Settings;

type Given = GivenValues<typeof BROKER_OF_PODS_SETTINGS>;

export interface BrokerOfPodsConfig extends Omit<BrokerOfPods, 'authorities'> {
  readonly authorities: AuthoritiesConfig;
}

type AuthoritiesConfig =
  | { readonly from: 'public' }
  | { readonly from: 'config_map'; readonly name: string }
  | { readonly from: 'file'; readonly path: string; readonly key: string };

const brokerUrl: ValueFormat<string> = {
  expected: 'an https URL of a host alone, such as https://token-sidecar-broker.tokens.svc:15084',
  parse(text) {
    const url = formats.serverUrl.parse(text);
    return url?.protocol === 'https:' && url.pathname === '/' ? url.origin : undefined;
  },
};

/** Mistakes are added to `problems`. */
export function readBrokerOfPods(given: Given, problems: Problem[]): BrokerOfPodsConfig | undefined {
  const { 'broker-url': url, 'broker-ca-file': file, 'broker-ca-config-map': configMap } = given;
  if (url === undefined) {
    for (const alone of [file, configMap, given['broker-audience']]) {
      if (alone !== undefined) problems.push({ key: alone.key, expected: '--broker-url beside it' });
    }
    return undefined;
  }
  if (file !== undefined && configMap !== undefined) {
    problems.push({ key: configMap.key, expected: `either this or ${file.key}, not both` });
  }
  const name = readValue(configMap, objectName, problems);
  return {
    url: readValue(url, brokerUrl, problems) ?? '',
    audience: readValue(given['broker-audience'], grantValue, problems) ?? 'token-sidecar-broker',
    authorities:
      file !== undefined
        ? { from: 'file', path: file.text, key: file.key }
        : name === undefined
          ? { from: 'public' }
          : { from: 'config_map', name },
  };
}

/**
 * Unusable CAs leave the last good ones in place.
 * @throws {ConfigurationError} if they are unusable from the start.
 */
export async function watchBroker(
  { authorities, ...broker }: BrokerOfPodsConfig,
  { log, ...watching }: DirectoryWatchOptions & { readonly log: Logger },
): Promise<{ readonly ofPods: BrokerOfPods; close(): void }> {
  if (authorities.from !== 'file') return { ofPods: { ...broker, authorities }, close: () => undefined };
  const file = await openLiveSecret(dirname(authorities.path), [basename(authorities.path)], watching);
  let current: string;
  try {
    current = usable(authorities, file.current());
  } catch (error) {
    file.close();
    throw error;
  }
  file.onChange((reading) => {
    const next = readAuthorities(reading);
    if (next.state === 'usable') {
      current = next.pem;
      log.info("the broker's CAs loaded, for pods that are made from now on");
    } else
      withoutRepeatLimit(log).error(
        { problem: next.why },
        "the broker's CAs not reloaded, the last good ones stay",
      );
  });
  return {
    ofPods: { ...broker, authorities: { from: 'file', current: () => current } },
    close: () => file.close(),
  };
}

/** @throws {ConfigurationError} */
export async function readBroker({ authorities, ...broker }: BrokerOfPodsConfig): Promise<BrokerOfPods> {
  if (authorities.from !== 'file') return { ...broker, authorities };
  const { path } = authorities;
  const pem = usable(authorities, await readMountedSecret(dirname(path), [basename(path)]));
  return { ...broker, authorities: { from: 'file', current: () => pem } };
}

type Authorities =
  | { readonly state: 'usable'; readonly pem: string }
  | { readonly state: 'unusable'; readonly why: string };

function usable(
  { path, key }: { readonly path: string; readonly key: string },
  reading: MountedSecret,
): string {
  const read = readAuthorities(reading);
  if (read.state === 'usable') return read.pem;
  throw new ConfigurationError([{ key, value: path, expected: `a usable CA bundle, but ${read.why}` }]);
}

function readAuthorities(reading: MountedSecret): Authorities {
  if (reading.state !== 'loaded') return { state: 'unusable', why: reading.detail };
  const [text = ''] = Object.values<string>(reading.values);
  const pem = blocksOf(text).join('');
  if (pem.length > MAX_AUTHORITIES) {
    return {
      state: 'unusable',
      why: `it has more than ${MAX_AUTHORITIES} characters, which pods have no room for`,
    };
  }
  const parsed = parseAuthorities(pem);
  return typeof parsed === 'string' ? { state: 'unusable', why: parsed } : { state: 'usable', pem };
}
