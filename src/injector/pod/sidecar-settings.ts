import { formats, protocolProblems, type ValueFormat } from '../../config/values.ts';
import { isLoopbackHost } from '../../platform/net/address.ts';
import type { Problem } from '../../platform/problems.ts';
import type { InjectionDefaults, SidecarResources } from '../injection-defaults.ts';
import { isAllowedConfigMap, isAllowedHost, isAllowedImage, limitsHosts } from './allow-lists.ts';
import {
  ANNOTATION,
  ANNOTATION_TABLE,
  type Annotation,
  type AnnotationValue,
  MODES,
  type ReadAnnotation,
  resolveResources,
  type SidecarMode,
  unknownAnnotations,
} from './annotations.ts';
import type { Cluster, ProfileOverrides, ProfileRequest, ResolvedProfiles } from './cluster.ts';
import { endsTls, hostsProblems } from './hosts-mode.ts';
import { CONFIG, type EnvironmentVariable, USER } from './pod.ts';
import { sidecarEnvironment } from './sidecar-environment.ts';
import { mountOf, type SidecarMount } from './sidecar-mounts.ts';

export interface SidecarSettings {
  readonly image: string;
  /** The operator's: a tenant must not choose what runs with NET_ADMIN. */
  readonly redirectImage: string;
  readonly imagePullPolicy: InjectionDefaults['imagePullPolicy'];
  readonly imagePullSecrets: readonly string[];
  readonly runAsUser: number | 'none';
  /** They must exist before the pod can start. */
  readonly secrets: readonly string[];
  readonly environment: readonly EnvironmentVariable[];
  readonly mounts: readonly SidecarMount[];
  readonly mode: SidecarMode;
  /** As in the annotation; only in the mode `hosts`. */
  readonly captured: string | undefined;
  /** As in the annotation; only in the mode `redirect`. */
  readonly redirected: string | undefined;
  /** The app then has to trust the sidecar. */
  readonly intercepts: boolean;
  readonly tokenFiles: boolean;
  readonly tokenEndpoint: boolean;
  readonly native: boolean;
  readonly resources: SidecarResources;
  readonly startupSeconds: number;
  readonly prometheusAnnotations: boolean;
  /** Present if profiles configure it. */
  readonly profiles?: Pick<ResolvedProfiles, 'configuration' | 'inUse'>;
  /** PEM, if the pod has to carry it. */
  readonly brokerAuthorities?: string;
}

interface ResolvedSettings {
  /** Valid only if there are no problems. */
  readonly settings: SidecarSettings;
  readonly problems: readonly Problem[];
  readonly warnings: readonly string[];
}

type PodOwner = Pick<ProfileRequest, 'namespace' | 'serviceAccount'>;

type Annotations = Readonly<Record<string, string>>;

export function resolveSettings(
  annotations: Annotations,
  defaults: InjectionDefaults,
  cluster: Cluster,
  owner: PodOwner,
): ResolvedSettings {
  const problems: Problem[] = unknownAnnotations(annotations);
  const warnings: string[] = [];

  function read<Name extends ReadAnnotation>(name: Name): AnnotationValue<Name> | undefined {
    const text = annotations[name];
    if (text === undefined) return undefined;
    const format = ANNOTATION_TABLE[name].format as ValueFormat<AnnotationValue<Name>>;
    const value = format.parse(text);
    if (value === undefined) problems.push({ key: name, value: text, expected: format.expected });
    return value;
  }
  /** As written, once its format is right. */
  function readText(name: ReadAnnotation): string | undefined {
    return read(name) === undefined ? undefined : annotations[name];
  }

  const configMap = read(ANNOTATION.configMap);
  const names = read(ANNOTATION.profile);
  const hasFile = annotations[ANNOTATION.configMap] !== undefined;
  const hasProfile = annotations[ANNOTATION.profile] !== undefined;
  if (hasFile && hasProfile) {
    problems.push({
      key: ANNOTATION.configMap,
      expected: `nothing beside ${ANNOTATION.profile}, which says it all`,
    });
  }
  // A default upstream would add a route to a file or profile, and a default provider would replace its own.
  const general: Partial<InjectionDefaults> = hasFile || hasProfile ? {} : defaults;

  const secret = read(ANNOTATION.secret) ?? (hasProfile ? undefined : defaults.secret);
  if (secret === undefined && annotations[ANNOTATION.secret] === undefined && !hasProfile) {
    problems.push({
      key: ANNOTATION.secret,
      expected: 'the name of the Secret with client_id and client_secret',
    });
  }
  const authUrl = readText(ANNOTATION.authUrl) ?? general.authUrl;
  if (authUrl === undefined && annotations[ANNOTATION.authUrl] === undefined && !hasFile && !hasProfile) {
    problems.push({ key: ANNOTATION.authUrl, expected: 'the URL of the identity provider' });
  }
  if (authUrl !== undefined && annotations[ANNOTATION.authUrl] !== undefined && travelsInClear(authUrl)) {
    const message = 'https, because the client secret travels there';
    if (defaults.allowInsecureTokenUrl)
      warnings.push(`${ANNOTATION.authUrl}: http carries the client secret in clear`);
    else problems.push({ key: ANNOTATION.authUrl, value: authUrl, expected: message });
  }
  const hosts = annotations[ANNOTATION.hosts];
  // With hosts, a default upstream would be one more place for the token.
  const target = readText(ANNOTATION.upstream) ?? (hosts === undefined ? general.upstream : undefined);
  const saysWhere = [ANNOTATION.upstream, ANNOTATION.hosts].some((name) => annotations[name] !== undefined);
  if (target === undefined && !saysWhere && !hasFile && !hasProfile) {
    problems.push({ key: ANNOTATION.upstream, expected: "the URL where the app's requests go" });
  }
  if (target !== undefined && travelsInClear(target)) {
    warnings.push(`${ANNOTATION.upstream}: http carries the access token in clear`);
  }
  const protocol = read(ANNOTATION.protocol);
  const parsedTarget = target === undefined ? undefined : formats.upstream.parse(target);
  if (parsedTarget !== undefined)
    problems.push(...protocolProblems(ANNOTATION.protocol, protocol, parsedTarget));
  const told = {
    authUrl,
    realm: read(ANNOTATION.realm) ?? general.realm,
    upstream: target,
    protocol,
    hosts,
    scope: read(ANNOTATION.scope) ?? general.scope,
    audience: read(ANNOTATION.audience) ?? general.audience,
    proofOfPossession: read(ANNOTATION.proofOfPossession),
  };
  const overrides: ProfileOverrides = {
    [ANNOTATION.secret]: secret,
    [ANNOTATION.authUrl]: authUrl,
    [ANNOTATION.realm]: told.realm,
    [ANNOTATION.scope]: told.scope,
    [ANNOTATION.audience]: told.audience,
    [ANNOTATION.proofOfPossession]: told.proofOfPossession,
    [ANNOTATION.upstream]: target,
    [ANNOTATION.protocol]: protocol,
    [ANNOTATION.hosts]: hosts,
  };
  const profiles = names && resolveProfiles(names, cluster, owner, overrides, defaults, problems, warnings);
  const mode = read(ANNOTATION.mode) ?? profiles?.mode ?? defaults.mode;
  problems.push(...forbiddenMode(mode, defaults));
  const isNamed = mode === 'hosts' || mode === 'redirect';
  if (isNamed && hosts === undefined && !hasProfile) {
    problems.push({
      key: ANNOTATION.hosts,
      expected: `the hosts that get the token, because the mode is ${mode}`,
    });
  }
  if (isNamed && hasProfile) {
    problems.push({
      key: ANNOTATION.mode,
      value: mode,
      expected: `forward, because ${ANNOTATION.profile} says which hosts there are`,
    });
  }
  if (mode === 'forward' && !hasFile && !hasProfile && hosts === undefined) {
    problems.push({
      key: ANNOTATION.configMap,
      expected:
        'the name of a ConfigMap whose forwardProxy lists the hosts allowed, because the mode is forward',
    });
  }
  const native = resolveNative(read(ANNOTATION.nativeSidecar), defaults, cluster, problems);
  problems.push(...hostsProblems({ annotations, mode, native, allowed: defaults.allowed }));
  if (profiles !== undefined && hosts === undefined)
    problems.push(...profileHostsProblems(profiles, mode, native));
  const image = read(ANNOTATION.image) ?? defaults.image;
  if (annotations[ANNOTATION.image] !== undefined && !/@|:[^/]+$/.test(image)) {
    warnings.push(`${ANNOTATION.image}: without a tag or digest the image may change under the pod`);
  }

  const caConfigMap = read(ANNOTATION.caConfigMap) ?? defaults.caConfigMap;
  const asked = annotations[ANNOTATION.caConfigMap];
  if (asked !== undefined && limitsHosts(defaults.allowed ?? {})) {
    // With CAs of their own and hostAliases, any server can pass for an allowed one.
    const expected = 'nothing, where the operator limits hosts: only public CAs prove who they are';
    problems.push({ key: ANNOTATION.caConfigMap, value: asked, expected });
  }
  const logLevel = read(ANNOTATION.logLevel) ?? defaults.logLevel;
  const captured = mode === 'hosts' ? hosts : undefined;
  const redirected = mode === 'redirect' ? hosts : undefined;
  const intercepts =
    profiles?.intercepts ?? (captured === undefined ? hosts !== undefined : endsTls(captured));
  problems.push(...forbidden({ authUrl, upstream: target, image, configMap }, defaults));

  const mayBeInsecure = defaults.allowInsecureTokenUrl && authUrl !== undefined && travelsInClear(authUrl);
  const config = `${CONFIG.directory}/${CONFIG.key}`;
  return {
    settings: {
      image,
      redirectImage: defaults.image,
      imagePullPolicy: defaults.imagePullPolicy,
      imagePullSecrets: [
        ...new Set([...(defaults.imagePullSecrets ?? []), ...(profiles?.imagePullSecrets ?? [])]),
      ],
      runAsUser: userFor(mode, defaults),
      secrets: profiles?.secrets ?? [secret as string],
      environment: sidecarEnvironment(
        hasProfile
          ? { config }
          : {
              ...told,
              hosts: isNamed ? undefined : hosts,
              captured,
              redirected,
              config: configMap === undefined ? undefined : config,
              allowInsecureTokenUrl: mayBeInsecure,
            },
        { intercepts, logLevel, trustsOwnAuthorities: caConfigMap !== undefined },
      ),
      mounts: [
        ...(profiles === undefined
          ? [mountOf.secret(secret as string)]
          : [...profiles.mounts, mountOf.configuration(ANNOTATION.configuration)]),
        ...(configMap === undefined ? [] : [mountOf.configMap(configMap)]),
        ...(caConfigMap === undefined ? [] : [mountOf.authorities(caConfigMap)]),
        ...(intercepts ? [mountOf.trust()] : []),
        ...(profiles?.tokenFiles ? [mountOf.tokens()] : []),
      ],
      ...(profiles === undefined ? {} : { profiles }),
      ...brokerAuthorities(profiles, defaults),
      mode,
      captured,
      redirected,
      intercepts,
      tokenFiles: profiles?.tokenFiles ?? false,
      tokenEndpoint: profiles?.tokenEndpoint ?? false,
      native,
      resources: resolveResources(read, defaults.resources, problems),
      startupSeconds: defaults.startupSeconds,
      prometheusAnnotations: defaults.prometheusAnnotations,
    },
    problems,
    warnings,
  };
}

/** Undefined if there are problems. */
function resolveProfiles(
  names: readonly string[],
  cluster: Cluster,
  owner: PodOwner,
  overrides: ProfileOverrides,
  defaults: InjectionDefaults,
  problems: Problem[],
  warnings: string[],
): ResolvedProfiles | undefined {
  if (cluster.profiles === undefined) {
    const expected = 'nothing, as profiles are switched off here (--watch-profiles)';
    problems.push({ key: ANNOTATION.profile, value: names.join(', '), expected });
    return undefined;
  }
  const resolution = cluster.profiles.resolve({ names, ...owner, overrides, defaults });
  if (resolution.state === 'refused') {
    problems.push(...resolution.problems);
    return undefined;
  }
  warnings.push(...resolution.warnings);
  return resolution;
}

function brokerAuthorities(
  profiles: ResolvedProfiles | undefined,
  { broker }: InjectionDefaults,
): Pick<SidecarSettings, 'brokerAuthorities'> {
  const authorities = broker?.authorities;
  if (profiles?.brokerAuthorities !== true || authorities?.from !== 'file') return {};
  return { brokerAuthorities: authorities.current() };
}

function profileHostsProblems(
  { intercepts }: ResolvedProfiles,
  mode: SidecarMode,
  native: boolean,
): Problem[] {
  const problems: Problem[] = [];
  if (intercepts === (mode === 'reverse')) {
    const expected = intercepts
      ? 'another than reverse, because a profile names hosts'
      : 'reverse, as no profile names hosts';
    problems.push({ key: ANNOTATION.mode, value: mode, expected });
  }
  if (intercepts && !native) {
    const expected = '"true", because a profile names hosts: apps read what to trust when they start';
    problems.push({ key: ANNOTATION.nativeSidecar, value: 'false', expected });
  }
  return problems;
}

interface Named {
  readonly authUrl: string | undefined;
  readonly upstream: string | undefined;
  readonly image: string;
  readonly configMap: string | undefined;
}

/** The operator's own default is never forbidden. */
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
    refuse(ANNOTATION.authUrl, authUrl, 'a host', allowed.authHosts);
  if (target !== undefined && target !== defaults.upstream && !isAllowedHost(target, allowed.upstreamHosts))
    refuse(ANNOTATION.upstream, target, 'a host', allowed.upstreamHosts);
  if (image !== defaults.image && !isAllowedImage(image, allowed))
    refuse(ANNOTATION.image, image, 'an image', allowed.images);
  if (configMap !== undefined && !isAllowedConfigMap(configMap, allowed))
    refuse(ANNOTATION.configMap, configMap, 'a ConfigMap', allowed.configMaps);
  return problems;
}

function forbiddenMode(
  mode: SidecarMode,
  { mode: usual, allowedModes = MODES.usual }: InjectionDefaults,
): Problem[] {
  if (mode === usual || allowedModes.includes(mode)) return [];
  const all = [...new Set([usual, ...allowedModes])].join(', ');
  return [{ key: ANNOTATION.mode, value: mode, expected: `a mode that the operator allows: ${all}` }];
}

/** App images may have the image's user. */
function userFor(mode: SidecarMode, { runAsUser = USER.sidecar }: InjectionDefaults): number | 'none' {
  return mode === 'redirect' && runAsUser === USER.sidecar ? USER.redirect : runAsUser;
}

/** The default if the annotations name no known one. */
export function modeOf(annotations: Annotations, defaults: InjectionDefaults): SidecarMode {
  return MODES.all.find((mode) => mode === annotations[ANNOTATION.mode]) ?? defaults.mode;
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
      key: ANNOTATION.nativeSidecar,
      value: asked,
      expected: `"false", because the cluster is Kubernetes ${version.major}.${version.minor} and native sidecars came with 1.29`,
    });
  }
  if (asked !== undefined) return asked === 'true';
  return defaults.nativeSidecar ?? supported;
}

/** Since Kubernetes 1.29. */
function hasNativeSidecars({ major, minor }: NonNullable<Cluster['version']>): boolean {
  return major > 1 || (major === 1 && minor >= 29);
}
