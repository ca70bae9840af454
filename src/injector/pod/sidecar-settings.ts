/** Annotations and defaults, to what this pod's sidecar runs by. */

import type { Problem } from '../../config/problems.ts';
import { didYouMean } from '../../config/settings.ts';
import { protocolProblems, upstreamProtocol } from '../../config/upstream-protocol.ts';
import { isLoopbackHost, oneOf, serverUrl, upstream, type ValueFormat } from '../../config/values.ts';
import { LOG_LEVELS } from '../../log/logger.ts';
import { isAllowedConfigMap, isAllowedHost, isAllowedImage, limitsHosts } from './allow-lists.ts';
import { grantValue, imageReference, objectName } from './annotation-formats.ts';
import {
  ANNOTATION_PREFIX,
  ANNOTATIONS,
  type Annotation,
  AUDIENCE,
  AUTH_URL,
  CA_CONFIG_MAP,
  CONFIG_MAP,
  CPU_LIMIT,
  CPU_REQUEST,
  HOSTS,
  IMAGE,
  LOG_LEVEL,
  MEMORY_LIMIT,
  MEMORY_REQUEST,
  MODE,
  NATIVE_SIDECAR,
  PROTOCOL,
  REALM,
  SCOPE,
  SECRET,
  UPSTREAM,
} from './annotations.ts';
import {
  type Cluster,
  hasNativeSidecars,
  type InjectionDefaults,
  SIDECAR_MODES,
  type SidecarMode,
  type SidecarResources,
} from './injection-defaults.ts';
import { hostsProblems } from './intercepted-hosts.ts';
import { CONFIG_DIRECTORY, CONFIG_KEY, SIDECAR_USER } from './names.ts';
import type { EnvironmentVariable } from './pod.ts';
import { type Quantity, quantity } from './quantity.ts';
import { sidecarEnvironment } from './sidecar-environment.ts';
import {
  authoritiesMount,
  configMapMount,
  type SidecarMount,
  secretMount,
  trustMount,
} from './sidecar-mounts.ts';

export interface SidecarSettings {
  readonly image: string;
  readonly imagePullPolicy: InjectionDefaults['imagePullPolicy'];
  readonly imagePullSecrets: readonly string[];
  readonly runAsUser: number | 'none';
  /** Secrets that have to be there before the pod can start. */
  readonly secrets: readonly string[];
  readonly environment: readonly Required<EnvironmentVariable>[];
  readonly mounts: readonly SidecarMount[];
  readonly mode: SidecarMode;
  /** Whether TLS of the app's containers ends here, so that they have to trust the sidecar. */
  readonly intercepts: boolean;
  readonly native: boolean;
  readonly resources: SidecarResources;
  readonly startupSeconds: number;
  readonly prometheusAnnotations: boolean;
}

export interface ResolvedSettings {
  /** Only right when there are no problems. */
  readonly settings: SidecarSettings;
  readonly problems: readonly Problem[];
  readonly warnings: readonly string[];
}

type Annotations = Readonly<Record<string, string>>;

export function resolveSettings(
  annotations: Annotations,
  defaults: InjectionDefaults,
  cluster: Cluster,
): ResolvedSettings {
  const problems: Problem[] = unknownAnnotations(annotations);
  const warnings: string[] = [];

  function read<T>(name: Annotation, format: ValueFormat<T>): T | undefined {
    const text = annotations[name];
    if (text === undefined) return undefined;
    const value = format.parse(text);
    if (value === undefined) problems.push({ key: name, value: text, expected: format.expected });
    return value;
  }
  /** The annotation as it was written, once its format is right. */
  function readText(name: Annotation, format: ValueFormat<unknown>): string | undefined {
    return read(name, format) === undefined ? undefined : annotations[name];
  }

  const configMap = read(CONFIG_MAP, objectName);
  // Beside a file, a default for the upstream would add a route that the file does not have, and one for the
  // provider would replace the file's own.
  const general: Partial<InjectionDefaults> = annotations[CONFIG_MAP] === undefined ? defaults : {};

  const secret = read(SECRET, objectName) ?? defaults.secret;
  if (secret === undefined && annotations[SECRET] === undefined) {
    problems.push({ key: SECRET, expected: 'the name of the Secret with client_id and client_secret' });
  }
  const authUrl = readText(AUTH_URL, serverUrl) ?? general.authUrl;
  if (authUrl === undefined && annotations[AUTH_URL] === undefined && configMap === undefined) {
    problems.push({ key: AUTH_URL, expected: 'the URL of the identity provider' });
  }
  if (authUrl !== undefined && annotations[AUTH_URL] !== undefined && travelsInClear(authUrl)) {
    const message = 'https, because the client secret travels there';
    if (defaults.allowInsecureTokenUrl) warnings.push(`${AUTH_URL}: http carries the client secret in clear`);
    else problems.push({ key: AUTH_URL, value: authUrl, expected: message });
  }
  const hosts = annotations[HOSTS];
  // Beside hosts the operator's default would be a further place for the token.
  const target = readText(UPSTREAM, upstream) ?? (hosts === undefined ? general.upstream : undefined);
  const names = [UPSTREAM, HOSTS].some((name) => annotations[name] !== undefined);
  if (target === undefined && !names && configMap === undefined) {
    problems.push({ key: UPSTREAM, expected: "the URL where the app's requests go" });
  }
  if (target !== undefined && travelsInClear(target)) {
    warnings.push(`${UPSTREAM}: http carries the access token in clear`);
  }
  const protocol = read(PROTOCOL, upstreamProtocol);
  const parsedTarget = target === undefined ? undefined : upstream.parse(target);
  if (parsedTarget !== undefined) problems.push(...protocolProblems(PROTOCOL, protocol, parsedTarget));
  const mode = read(MODE, oneOf(SIDECAR_MODES)) ?? defaults.mode;
  if (mode === 'forward' && annotations[CONFIG_MAP] === undefined && hosts === undefined) {
    problems.push({
      key: CONFIG_MAP,
      expected:
        'the name of a ConfigMap whose forwardProxy lists the hosts allowed, because the mode is forward',
    });
  }
  const native = resolveNative(read(NATIVE_SIDECAR, oneOf(['true', 'false'])), defaults, cluster, problems);
  problems.push(...hostsProblems({ annotations, mode, native, allowed: defaults.allowed }));
  const realm = read(REALM, grantValue) ?? general.realm;
  const scope = read(SCOPE, grantValue) ?? general.scope;
  const audience = read(AUDIENCE, grantValue) ?? general.audience;
  const image = read(IMAGE, imageReference) ?? defaults.image;
  if (annotations[IMAGE] !== undefined && !/@|:[^/]+$/.test(image)) {
    warnings.push(`${IMAGE}: without a tag or digest the image may change under the pod`);
  }

  const caConfigMap = read(CA_CONFIG_MAP, objectName) ?? defaults.caConfigMap;
  if (annotations[CA_CONFIG_MAP] !== undefined && limitsHosts(defaults.allowed ?? {})) {
    // With a CA of one's own and hostAliases, any server is the one that is allowed.
    const expected = 'nothing, where the operator limits hosts: only public CAs prove who they are';
    problems.push({ key: CA_CONFIG_MAP, value: annotations[CA_CONFIG_MAP], expected });
  }
  const logLevel = read(LOG_LEVEL, oneOf(LOG_LEVELS)) ?? defaults.logLevel;
  const intercepts = hosts !== undefined;
  problems.push(...forbidden({ authUrl, upstream: target, image, configMap }, defaults));

  return {
    settings: {
      image,
      imagePullPolicy: defaults.imagePullPolicy,
      imagePullSecrets: defaults.imagePullSecrets ?? [],
      runAsUser: defaults.runAsUser ?? SIDECAR_USER,
      secrets: [secret as string],
      environment: sidecarEnvironment(
        {
          config: configMap === undefined ? undefined : `${CONFIG_DIRECTORY}/${CONFIG_KEY}`,
          authUrl,
          realm,
          allowInsecureTokenUrl:
            defaults.allowInsecureTokenUrl && authUrl !== undefined && travelsInClear(authUrl),
          upstream: target,
          protocol,
          hosts,
          scope,
          audience,
        },
        { intercepts, logLevel, trustsOwnAuthorities: caConfigMap !== undefined },
      ),
      mounts: [
        secretMount(secret as string),
        ...(configMap === undefined ? [] : [configMapMount(configMap)]),
        ...(caConfigMap === undefined ? [] : [authoritiesMount(caConfigMap)]),
        ...(intercepts ? [trustMount()] : []),
      ],
      mode,
      intercepts,
      native,
      resources: resolveResources((name) => read(name, quantity), defaults.resources, problems),
      startupSeconds: defaults.startupSeconds,
      prometheusAnnotations: defaults.prometheusAnnotations,
    },
    problems,
    warnings,
  };
}

interface Named {
  readonly authUrl: string | undefined;
  readonly upstream: string | undefined;
  readonly image: string;
  readonly configMap: string | undefined;
}

/** What the operator's lists do not allow, of what is not the operator's own default. */
function forbidden(
  { authUrl, upstream: target, image, configMap }: Named,
  defaults: InjectionDefaults,
): Problem[] {
  const { allowed = {} } = defaults;
  const problems: Problem[] = [];
  const refuse = (key: Annotation, value: string, what: string, list: readonly string[] = []): void => {
    problems.push({ key, value, expected: `${what} that the operator allows: ${list.join(', ') || 'none'}` });
  };
  if (authUrl !== undefined && authUrl !== defaults.authUrl && !isAllowedHost(authUrl, allowed.authHosts))
    refuse(AUTH_URL, authUrl, 'a host', allowed.authHosts);
  if (target !== undefined && target !== defaults.upstream && !isAllowedHost(target, allowed.upstreamHosts))
    refuse(UPSTREAM, target, 'a host', allowed.upstreamHosts);
  if (image !== defaults.image && !isAllowedImage(image, allowed))
    refuse(IMAGE, image, 'an image', allowed.images);
  if (configMap !== undefined && !isAllowedConfigMap(configMap, allowed))
    refuse(CONFIG_MAP, configMap, 'a ConfigMap', allowed.configMaps);
  return problems;
}

/** What the API server takes of a name behind the prefix; nothing longer was mistyped. */
const MAX_OWN_NAME = 63;

/** A suggestion costs time, and an unchecked pod may have any number of names. */
const MOST_SUGGESTIONS = 10;

/** The mode that the annotations ask for, or the default where they say nothing that is understood. */
export function modeOf(annotations: Annotations, defaults: InjectionDefaults): SidecarMode {
  return SIDECAR_MODES.find((mode) => mode === annotations[MODE]) ?? defaults.mode;
}

function unknownAnnotations(annotations: Annotations): Problem[] {
  const names = ANNOTATIONS.map((name) => name.slice(ANNOTATION_PREFIX.length));
  return Object.keys(annotations)
    .filter((name) => name.startsWith(ANNOTATION_PREFIX))
    .map((name) => name.slice(ANNOTATION_PREFIX.length))
    .filter((own) => !names.includes(own))
    .map((own, index) => {
      const suggests = index < MOST_SUGGESTIONS && own.length <= MAX_OWN_NAME;
      const suggestion = suggests ? didYouMean(own, names, ANNOTATION_PREFIX) : '';
      return {
        key: `${ANNOTATION_PREFIX}${own.slice(0, MAX_OWN_NAME)}`,
        expected: `an annotation that there is${suggestion}`,
      };
    });
}

function travelsInClear(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !isLoopbackHost(hostname);
}

function resolveNative(
  asked: 'true' | 'false' | undefined,
  defaults: InjectionDefaults,
  { version }: Cluster,
  problems: Problem[],
): boolean {
  const supported = version === undefined || hasNativeSidecars(version);
  if (asked === 'true' && !supported) {
    problems.push({
      key: NATIVE_SIDECAR,
      value: asked,
      expected: `"false", because the cluster is Kubernetes ${version.major}.${version.minor} and native sidecars came with 1.29`,
    });
  }
  if (asked !== undefined) return asked === 'true';
  return defaults.nativeSidecar ?? supported;
}

function resolveResources(
  read: (name: Annotation) => Quantity | undefined,
  defaults: SidecarResources,
  problems: Problem[],
): SidecarResources {
  const pairs = [
    ['cpu', CPU_REQUEST, CPU_LIMIT],
    ['memory', MEMORY_REQUEST, MEMORY_LIMIT],
  ] as const;
  const resources: Record<string, string> = {};
  for (const [resource, requestName, limitName] of pairs) {
    const givenRequest = read(requestName);
    const givenLimit = read(limitName);
    let request = givenRequest ?? parsed(defaults[`${resource}Request`]);
    let limit = givenLimit ?? parsed(defaults[`${resource}Limit`]);
    if (request !== undefined && limit !== undefined && request.amount > limit.amount) {
      if (givenRequest !== undefined && givenLimit !== undefined) {
        const expected = `at most the limit, ${limit.text}`;
        problems.push({ key: requestName, value: request.text, expected });
      } else if (givenRequest === undefined) {
        request = limit;
      } else {
        limit = request;
      }
    }
    if (request !== undefined) resources[`${resource}Request`] = request.text;
    if (limit !== undefined) resources[`${resource}Limit`] = limit.text;
  }
  return resources;
}

function parsed(text: string | undefined): Quantity | undefined {
  return text === undefined ? undefined : quantity.parse(text);
}
