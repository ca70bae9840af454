import { type GivenValues, readCertificatePair, readValue, type Settings } from '../config/settings.ts';
import { formats, oneOf, type ValueFormat } from '../config/values.ts';
import { LOG_LEVELS, type LogLevel, ONE_OF_LOG_LEVELS } from '../platform/log/logger.ts';
import type { ListenAddress } from '../platform/net/address.ts';
import type { Problem } from '../platform/problems.ts';
import type { CertificateFiles, watchClientAuthorities } from '../platform/tls/certificate-files.ts';
import { type BrokerOfPodsConfig, readBrokerOfPods } from './broker-of-pods.ts';
import { INJECTION_SETTINGS, type InjectionDefaults, readInjectionDefaults } from './injection-defaults.ts';
import { objectName } from './pod/annotations.ts';

export const INJECTOR_SETTINGS = {
  listen: { argument: 'HOST:PORT', description: 'Where the webhooks listen', default: '0.0.0.0:15443' },
  'admin-listen': { argument: 'HOST:PORT', description: 'Probes and metrics', default: '0.0.0.0:15081' },
  'tls-cert-file': {
    argument: 'PATH',
    description: 'Serving certificate in PEM, with its chain; followed when changed',
  },
  'tls-key-file': { argument: 'PATH', description: 'Its private key in PEM, in the same directory' },
  'client-ca-file': {
    argument: 'PATH',
    description:
      'CAs in PEM: only API servers with a client certificate of one may call the webhooks; followed when changed',
  },
  'client-names': {
    argument: 'NAMES',
    description: 'Common names of client certificates, by commas',
    default: 'any',
  },
  'certificate-secret': {
    argument: 'NAME',
    description: 'Make the certificate, and keep it in this Secret; needs the API',
  },
  'certificate-lifetime': {
    argument: 'DURATION',
    description: 'Its life; it is replaced after two thirds',
    default: '90d',
  },
  'certificate-propagation': {
    argument: 'DURATION',
    description: 'How long API servers may take to notice that the webhooks trust a new CA',
    default: '60s',
  },
  'service-name': {
    argument: 'NAME',
    description: 'Service that the API server calls, for its names',
    default: 'token-sidecar-injector',
  },
  'webhook-configuration': {
    argument: 'NAME',
    description: 'MutatingWebhookConfiguration whose CA bundle is kept up to date',
  },
  'validating-webhook-configuration': {
    argument: 'NAME',
    description: 'The same for a ValidatingWebhookConfiguration',
  },
  'kubernetes-api': {
    argument: 'BOOLEAN',
    description: "Use the Kubernetes API: the cluster's version, Events, Secrets",
    default: 'false',
  },
  kubeconfig: {
    argument: 'PATH',
    description: "Reach the API by this file, not by the pod's service account",
  },
  namespace: {
    argument: 'NAME',
    description: 'Namespace of the injector',
    default: 'that of the service account or the kubeconfig',
  },
  'check-secrets': {
    argument: 'BOOLEAN',
    description: 'Warn when the Secret that a pod names does not exist',
    default: 'false',
  },
  events: {
    argument: 'BOOLEAN',
    description: 'Tell owners of pods by Events what could not be done; needs the API',
    default: 'true with the API',
  },
  'watch-pods': {
    argument: 'BOOLEAN',
    description:
      'Look for pods that lack the sidecar they ask for, or whose sidecar gets no token; needs the API',
    default: 'false',
  },
  healing: {
    argument: 'WHAT',
    description: 'What becomes of pods that lack the sidecar: off, or evict, one at a time',
    default: 'off',
  },
  'watch-profiles': {
    argument: 'BOOLEAN',
    description: 'Serve TokenProfiles and ClusterTokenProfiles, and report on them; needs the API',
    default: 'false',
  },
  'profiles-lease': {
    argument: 'NAME',
    description: 'Lease whose holder reports on profiles',
    default: 'token-sidecar-injector-profiles',
  },
  'pods-lease': {
    argument: 'NAME',
    description: 'Lease whose holder watches pods',
    default: 'token-sidecar-injector',
  },
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
  'wait-timeout': {
    argument: 'DURATION',
    description: 'How long `injector wait` waits for the webhook',
    default: '60s',
  },
  'log-level': { argument: 'LEVEL', description: ONE_OF_LOG_LEVELS, default: 'info' },
  ...INJECTION_SETTINGS,
} as const satisfies Settings;

export interface InjectorConfig {
  readonly listen: ListenAddress;
  readonly adminListen: ListenAddress;
  /** Missing only if `problems` says why. */
  readonly certificate?: CertificateConfig;
  readonly clients?: Parameters<typeof watchClientAuthorities>[0];
  readonly kubernetes?: KubernetesConfig;
  readonly drainDelayMs: number;
  readonly drainTimeoutMs: number;
  readonly logLevel: LogLevel;
  readonly defaults: InjectionDefaults;
  readonly broker?: BrokerOfPodsConfig;
}

type CertificateConfig =
  | ({ readonly source: 'files' } & CertificateFiles)
  | ({ readonly source: 'self-managed' } & SelfManagedConfig);

interface SelfManagedConfig {
  readonly secretName: string;
  readonly serviceName: string;
  readonly mutatingConfiguration: string;
  readonly validatingConfiguration?: string;
  readonly lifetimeMs: number;
  readonly propagationMs: number;
}

interface KubernetesConfig {
  readonly kubeconfig?: string;
  readonly namespace?: string;
  readonly checkSecrets: boolean;
  readonly events: boolean;
  readonly pods?: WatchedPodsConfig;
  readonly profiles?: { readonly leaseName: string };
}

interface WatchedPodsConfig {
  readonly leaseName: string;
  readonly heals: boolean;
  readonly configuration?: string;
}

type Given = GivenValues<typeof INJECTOR_SETTINGS>;

const boolean = oneOf(['true', 'false']);

/** A shorter one would be replaced before anybody knows it. */
const certificateLifetime: ValueFormat<number> = {
  expected: 'a duration from 1h to 9999d, such as 90d',
  parse(text) {
    const ms = formats.duration.parse(text);
    return ms === undefined || ms < 3_600_000 || ms > 9999 * 86_400_000 ? undefined : ms;
  },
};

/** With a longer one the successor would be too late. */
const propagation: ValueFormat<number> = {
  expected: 'a duration of at most 10m, such as 60s',
  parse(text) {
    const ms = formats.duration.parse(text);
    return ms === undefined || ms > 600_000 ? undefined : ms;
  },
};

/** Mistakes are added to `problems`. */
export function readInjectorConfig(given: Given, problems: Problem[]): InjectorConfig {
  const usesApi = readValue(given['kubernetes-api'], boolean, problems) === 'true';
  const checkSecrets = readValue(given['check-secrets'], boolean, problems) === 'true';
  if (checkSecrets && !usesApi) {
    const key = given['check-secrets']?.key ?? '--check-secrets';
    problems.push({ key, value: 'true', expected: 'false without --kubernetes-api' });
  }
  const events = readValue(given.events, boolean, problems);
  if (events === 'true' && !usesApi) {
    const key = given.events?.key ?? '--events';
    problems.push({ key, value: 'true', expected: 'false without --kubernetes-api' });
  }
  const pods = readWatchedPods(given, usesApi, problems);
  const profiles = readWatchedProfiles(given, usesApi, problems);
  const certificate = readCertificate(given, usesApi, problems);
  const clients = readClients(given, problems);
  const namespace = readValue(given.namespace, objectName, problems);
  const broker = readBrokerOfPods(given, problems);
  return {
    listen: readValue(given.listen, formats.listenAddress, problems) ?? { host: '0.0.0.0', port: 15_443 },
    adminListen: readValue(given['admin-listen'], formats.listenAddress, problems) ?? {
      host: '0.0.0.0',
      port: 15_081,
    },
    ...(certificate === undefined ? {} : { certificate }),
    ...(clients === undefined ? {} : { clients }),
    ...(usesApi
      ? {
          kubernetes: {
            ...(given.kubeconfig === undefined ? {} : { kubeconfig: given.kubeconfig.text }),
            ...(namespace === undefined ? {} : { namespace }),
            checkSecrets,
            events: events !== 'false',
            ...(pods === undefined ? {} : { pods }),
            ...(profiles === undefined ? {} : { profiles }),
          },
        }
      : {}),
    drainDelayMs: readValue(given['drain-delay'], formats.duration, problems) ?? 5000,
    drainTimeoutMs: readValue(given['drain-timeout'], formats.duration, problems) ?? 10_000,
    logLevel: readValue(given['log-level'], oneOf(LOG_LEVELS), problems) ?? 'info',
    defaults: readInjectionDefaults(given, problems),
    ...(broker === undefined ? {} : { broker }),
  };
}

function readWatchedPods(given: Given, usesApi: boolean, problems: Problem[]): WatchedPodsConfig | undefined {
  const isAsked = readValue(given['watch-pods'], boolean, problems) === 'true';
  const heals = readValue(given.healing, oneOf(['off', 'evict']), problems) === 'evict';
  const leaseName = readValue(given['pods-lease'], objectName, problems) ?? 'token-sidecar-injector';
  const configuration = given['webhook-configuration']?.text;
  if (isAsked && !usesApi) {
    const key = given['watch-pods']?.key ?? '--watch-pods';
    problems.push({ key, value: 'true', expected: 'false without --kubernetes-api' });
  }
  if (heals && !isAsked) {
    const key = given.healing?.key ?? '--healing';
    problems.push({ key, value: 'evict', expected: 'off without --watch-pods' });
  }
  return isAsked
    ? { leaseName, heals, ...(configuration === undefined ? {} : { configuration }) }
    : undefined;
}

function readWatchedProfiles(
  given: Given,
  usesApi: boolean,
  problems: Problem[],
): KubernetesConfig['profiles'] {
  const isAsked = readValue(given['watch-profiles'], boolean, problems) === 'true';
  const leaseName = readValue(given['profiles-lease'], objectName, problems);
  if (isAsked && !usesApi) {
    const key = given['watch-profiles']?.key ?? '--watch-profiles';
    problems.push({ key, value: 'true', expected: 'false without --kubernetes-api' });
  }
  return isAsked ? { leaseName: leaseName ?? 'token-sidecar-injector-profiles' } : undefined;
}

const commonNames: ValueFormat<readonly string[]> = {
  expected: 'one or more names, by commas',
  parse(text) {
    const names = text.split(',').map((name) => name.trim());
    return names.includes('') ? undefined : names;
  },
};

function readClients(given: Given, problems: Problem[]): InjectorConfig['clients'] {
  const caFile = given['client-ca-file'];
  const names = readValue(given['client-names'], commonNames, problems) ?? [];
  if (caFile !== undefined) return { caFile: caFile.text, names, key: caFile.key };
  const { 'client-names': alone } = given;
  if (alone !== undefined) problems.push({ key: alone.key, expected: '--client-ca-file beside it' });
  return undefined;
}

function readCertificate(given: Given, usesApi: boolean, problems: Problem[]): CertificateConfig | undefined {
  const secret = given['certificate-secret'];
  const certFile = given['tls-cert-file'];
  const keyFile = given['tls-key-file'];
  if (secret === undefined) return readFiles(certFile, keyFile, problems);
  for (const file of [certFile, keyFile]) {
    if (file !== undefined)
      problems.push({ key: file.key, expected: `either this or ${secret.key}, not both` });
  }
  if (!usesApi)
    problems.push({ key: secret.key, value: secret.text, expected: 'nothing without --kubernetes-api' });
  const secretName = readValue(secret, objectName, problems);
  const serviceName = readValue(given['service-name'], objectName, problems) ?? 'token-sidecar-injector';
  const mutatingConfiguration = readValue(given['webhook-configuration'], objectName, problems);
  if (given['webhook-configuration'] === undefined) {
    const expected = `the name of the MutatingWebhookConfiguration, as ${secret.key} is given`;
    problems.push({ key: '--webhook-configuration', expected });
  }
  const validating = readValue(given['validating-webhook-configuration'], objectName, problems);
  const lifetimeMs =
    readValue(given['certificate-lifetime'], certificateLifetime, problems) ?? 90 * 86_400_000;
  const propagationMs = readValue(given['certificate-propagation'], propagation, problems) ?? 60_000;
  if (secretName === undefined || mutatingConfiguration === undefined) return undefined;
  return {
    source: 'self-managed',
    secretName,
    serviceName,
    mutatingConfiguration,
    ...(validating === undefined ? {} : { validatingConfiguration: validating }),
    lifetimeMs,
    propagationMs,
  };
}

function readFiles(
  cert: Given['tls-cert-file'],
  key: Given['tls-key-file'],
  problems: Problem[],
): CertificateConfig | undefined {
  if (cert === undefined || key === undefined) {
    const name = cert === undefined ? '--tls-cert-file' : '--tls-key-file';
    problems.push({ key: name, expected: 'the serving certificate and its key, or --certificate-secret' });
    return undefined;
  }
  const files = readCertificatePair(cert, key, problems);
  return files && { source: 'files', ...files };
}
