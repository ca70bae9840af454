/** The operator's flags, for what annotations do not say. */

import { type GivenValues, readValue, type Settings } from '../config/settings.ts';
import { formats, oneOf, type ValueFormat } from '../config/values.ts';
import { LOG_LEVELS, type LogLevel } from '../platform/log/logger.ts';
import { isLoopbackHost } from '../platform/net/address.ts';
import type { Problem } from '../platform/problems.ts';
import { VERSION } from '../platform/version.ts';
import { BROKER_OF_PODS_SETTINGS } from './broker-of-pods.ts';
import { type AllowLists, allowedHost, allowedImage } from './pod/allow-lists.ts';
import {
  grantValue,
  imageReference,
  MODES,
  objectName,
  quantity,
  type SidecarMode,
} from './pod/annotations.ts';
import type { BrokerOfPods } from './pod/cluster.ts';
import { USER } from './pod/pod.ts';

/** Checked when the injector starts. */
export interface InjectionDefaults {
  readonly image: string;
  readonly imagePullPolicy: 'Always' | 'IfNotPresent' | 'Never';
  /** In the pod's namespace. */
  readonly imagePullSecrets?: readonly string[];
  /** The image's own if absent; `none` if the platform assigns them. */
  readonly runAsUser?: number | 'none';
  readonly secret?: string;
  readonly authUrl?: string;
  readonly realm: string;
  /** Allow `http://`, where the client secret travels in clear. No annotation can allow this. */
  readonly allowInsecureTokenUrl: boolean;
  readonly scope?: string;
  readonly audience?: string;
  readonly upstream?: string;
  /** In the pod's namespace, with CAs besides the public ones. */
  readonly caConfigMap?: string;
  readonly mode: SidecarMode;
  /** Besides `mode`; `MODES.usual` by default. */
  readonly allowedModes?: readonly SidecarMode[];
  /** If absent, the cluster's version decides. */
  readonly nativeSidecar?: boolean;
  readonly logLevel: LogLevel;
  readonly resources: SidecarResources;
  /** For the first token; then the kubelet restarts the sidecar. */
  readonly startupSeconds: number;
  /** For scrapers, unless the pod is marked already. */
  readonly prometheusAnnotations: boolean;
  /** The defaults themselves are always allowed. */
  readonly allowed?: AllowLists;
  readonly broker?: BrokerOfPods;
}

export interface SidecarResources {
  readonly cpuRequest?: string;
  readonly cpuLimit?: string;
  readonly memoryRequest?: string;
  readonly memoryLimit?: string;
}

/** Published by the release workflow. */
const DEFAULT_IMAGE = `ghcr.io/token-sidecar/token-sidecar:${VERSION}`;
const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never'] as const;

export const INJECTION_SETTINGS = {
  'default-image': {
    argument: 'IMAGE',
    description: 'Image of the sidecar; the public one is published by the release workflow',
    default: DEFAULT_IMAGE,
  },
  'default-image-pull-policy': {
    argument: 'POLICY',
    description: `One of ${PULL_POLICIES.join(', ')}`,
    default: 'IfNotPresent',
  },
  'default-image-pull-secrets': {
    argument: 'NAMES',
    description: "Secrets of the pod's namespace, by commas, that the image is pulled with",
    default: 'none',
  },
  'default-run-as-user': {
    argument: 'UID',
    description:
      "User and group of the sidecar, and group of the pod's volumes; none if the platform assigns them (OpenShift)",
    default: String(USER.sidecar),
  },
  'default-secret': { argument: 'NAME', description: 'Secret with client_id and client_secret' },
  'default-auth-url': { argument: 'URL', description: 'Base URL of the identity provider' },
  'default-realm': { argument: 'NAME', description: 'Realm name', default: 'dx' },
  'default-allow-insecure-token-url': {
    argument: 'BOOLEAN',
    description: 'Allow http:// to a token endpoint on another host: the client secret travels in clear',
    default: 'false',
  },
  'default-scope': { argument: 'SCOPE', description: 'Scope sent with the grant' },
  'default-audience': { argument: 'AUDIENCE', description: 'Audience sent with the grant' },
  'default-upstream': {
    argument: 'URL',
    description: "Where the apps' requests go, with an optional base path",
  },
  'default-ca-config-map': {
    argument: 'NAME',
    description: "ConfigMap of the pod's namespace, key ca.crt: CAs in PEM trusted besides the public ones",
  },
  'default-mode': { argument: 'MODE', description: `One of ${MODES.default.join(', ')}`, default: 'reverse' },
  'default-native-sidecar': {
    argument: 'BOOLEAN',
    description: 'Use native sidecars',
    default: "true, or what the cluster's version allows",
  },
  'default-log-level': {
    argument: 'LEVEL',
    description: 'Log level of the sidecar',
    default: 'info',
  },
  'default-cpu-request': { argument: 'QUANTITY', description: 'CPU requested', default: '10m' },
  'default-cpu-limit': { argument: 'QUANTITY', description: 'CPU limit', default: 'none' },
  'default-memory-request': { argument: 'QUANTITY', description: 'Memory requested', default: '48Mi' },
  'default-memory-limit': { argument: 'QUANTITY', description: 'Memory limit', default: '128Mi' },
  'default-startup-seconds': {
    argument: 'SECONDS',
    description: 'Time for the first token; then the kubelet restarts the sidecar',
    default: '120',
  },
  'default-prometheus-annotations': {
    argument: 'BOOLEAN',
    description: 'Mark pods with prometheus.io/scrape, port and path, unless they are marked',
    default: 'true',
  },
  'allowed-auth-hosts': {
    argument: 'HOSTS',
    description: 'Hosts of the annotation auth-url, by commas, over TLS unless listed as http://HOST',
    default: 'any',
  },
  'allowed-upstream-hosts': {
    argument: 'HOSTS',
    description: 'Hosts of the annotation upstream, by commas, over TLS unless listed as http://HOST',
    default: 'any',
  },
  'allowed-images': {
    argument: 'IMAGES',
    description: 'Images of the annotation image, by commas, without tag, or prefixes that end in "/"',
    default: 'any, or the default alone if hosts are limited',
  },
  'allowed-config-maps': {
    argument: 'NAMES',
    description: 'ConfigMaps of the annotation config-map, by commas; * for any',
    default: 'any, or none if hosts are limited',
  },
  'allowed-modes': {
    argument: 'MODES',
    description: `Modes of pods besides the default, by commas, of ${MODES.all.join(', ')}: redirect adds an init container with NET_ADMIN`,
    default: MODES.usual.join(),
  },
  ...BROKER_OF_PODS_SETTINGS,
} as const satisfies Settings;

const boolean = oneOf(['true', 'false']);

const configMapName: ValueFormat<string> = {
  expected: 'names of ConfigMaps by commas, or *',
  parse: (text) => (text === '*' ? text : objectName.parse(text)),
};

function byCommas<T>({ expected, parse }: ValueFormat<T>): ValueFormat<readonly T[]> {
  return {
    expected,
    parse(text) {
      const values = text.split(',').map((each) => parse(each.trim()));
      return values.every((value) => value !== undefined) ? values : undefined;
    },
  };
}

const seconds: ValueFormat<number> = {
  expected: 'a whole number of seconds from 1 to 86400',
  parse: (text) => (/^\d{1,5}$/.test(text) && +text >= 1 && +text <= 86_400 ? Number(text) : undefined),
};

const userId: ValueFormat<number | 'none'> = {
  expected: 'a number from 1 to 2147483647, or none',
  parse(text) {
    if (text === 'none') return text;
    return /^[1-9]\d{0,9}$/.test(text) && Number(text) <= 2_147_483_647 ? Number(text) : undefined;
  },
};

/** Mistakes are added to `problems`. */
export function readInjectionDefaults(
  given: GivenValues<typeof INJECTION_SETTINGS>,
  problems: Problem[],
): InjectionDefaults {
  type Flag = keyof typeof INJECTION_SETTINGS;
  const read = <T>(flag: Flag, format: ValueFormat<T>): T | undefined =>
    readValue(given[flag], format, problems);
  const readText = <Key extends string>(
    key: Key,
    flag: Flag,
    format: ValueFormat<unknown>,
  ): Partial<Record<Key, string>> => {
    const value = given[flag];
    if (value === undefined || read(flag, format) === undefined) return {};
    return { [key]: value.text } as Record<Key, string>;
  };

  const listOf = <T>(flag: Flag, format: ValueFormat<T>) => read(flag, byCommas(format));
  const authHosts = listOf('allowed-auth-hosts', allowedHost);
  const upstreamHosts = listOf('allowed-upstream-hosts', allowedHost);
  const images = listOf('allowed-images', allowedImage);
  const configMaps = listOf('allowed-config-maps', configMapName);
  const allowedModes = listOf('allowed-modes', oneOf(MODES.all));
  const caConfigMap = given['default-ca-config-map'];
  if (caConfigMap !== undefined && (authHosts !== undefined || upstreamHosts !== undefined)) {
    const expected =
      'nothing where hosts are limited: whoever writes that ConfigMap could pass for any of them';
    problems.push({ key: caConfigMap.key, value: caConfigMap.text, expected });
  }
  const native = read('default-native-sidecar', boolean);
  const allowInsecureTokenUrl = read('default-allow-insecure-token-url', boolean) === 'true';
  const authUrl = readText('authUrl', 'default-auth-url', formats.serverUrl);
  if (authUrl.authUrl !== undefined && !allowInsecureTokenUrl) checkSecure(authUrl.authUrl, problems, given);
  return {
    image: read('default-image', imageReference) ?? DEFAULT_IMAGE,
    imagePullPolicy: read('default-image-pull-policy', oneOf(PULL_POLICIES)) ?? 'IfNotPresent',
    imagePullSecrets: listOf('default-image-pull-secrets', objectName) ?? [],
    runAsUser: read('default-run-as-user', userId) ?? USER.sidecar,
    ...readText('secret', 'default-secret', objectName),
    ...authUrl,
    realm: read('default-realm', grantValue) ?? 'dx',
    allowInsecureTokenUrl,
    ...readText('scope', 'default-scope', grantValue),
    ...readText('audience', 'default-audience', grantValue),
    ...readText('upstream', 'default-upstream', formats.upstream),
    ...readText('caConfigMap', 'default-ca-config-map', objectName),
    mode: read('default-mode', oneOf(MODES.default)) ?? 'reverse',
    ...(allowedModes === undefined ? {} : { allowedModes }),
    ...(native === undefined ? {} : { nativeSidecar: native === 'true' }),
    logLevel: read('default-log-level', oneOf(LOG_LEVELS)) ?? 'info',
    resources: {
      cpuRequest: '10m',
      memoryRequest: '48Mi',
      memoryLimit: '128Mi',
      ...readText('cpuRequest', 'default-cpu-request', quantity),
      ...readText('cpuLimit', 'default-cpu-limit', quantity),
      ...readText('memoryRequest', 'default-memory-request', quantity),
      ...readText('memoryLimit', 'default-memory-limit', quantity),
    },
    startupSeconds: read('default-startup-seconds', seconds) ?? 120,
    prometheusAnnotations: read('default-prometheus-annotations', boolean) !== 'false',
    allowed: {
      ...(authHosts === undefined ? {} : { authHosts }),
      ...(upstreamHosts === undefined ? {} : { upstreamHosts }),
      ...(images === undefined ? {} : { images }),
      ...(configMaps === undefined ? {} : { configMaps }),
    },
  };
}

function checkSecure(url: string, problems: Problem[], given: GivenValues<typeof INJECTION_SETTINGS>): void {
  const { protocol, hostname } = new URL(url);
  if (protocol === 'https:' || isLoopbackHost(hostname)) return;
  problems.push({
    key: given['default-auth-url']?.key ?? '--default-auth-url',
    value: url,
    expected:
      'https, because the client secret travels there; --default-allow-insecure-token-url permits http',
  });
}
