/**
 * The annotations, one documented constant each. They stand on the pod, or on the pod template of a workload; never
 * on the workload itself, which the injector does not see.
 */

import { didYouMean } from '../../config/suggestion.ts';
import type { ValueFormat } from '../../config/values.ts';
import type { Problem } from '../../platform/problems.ts';

/** Every name that starts with this is ours: one that is not listed below is refused, because it may be mistyped. */
export const ANNOTATION_PREFIX = 'token-sidecar.dev/';

/** `"true"` asks for the sidecar, `"false"` does not; any other value is refused. */
export const INJECT = 'token-sidecar.dev/inject';

/** Name of the Secret, in the pod's namespace, with the keys `client_id` and `client_secret`. */
export const SECRET = 'token-sidecar.dev/secret';

/** Base URL of the identity provider; the token endpoint is `{auth-url}/realms/{realm}/protocol/openid-connect/token`. */
export const AUTH_URL = 'token-sidecar.dev/auth-url';

/** Realm name. */
export const REALM = 'token-sidecar.dev/realm';

/** Scope sent with the grant. */
export const SCOPE = 'token-sidecar.dev/scope';

/** Audience sent with the grant. */
export const AUDIENCE = 'token-sidecar.dev/audience';

/** Where the app's requests go, with an optional base path. */
export const UPSTREAM = 'token-sidecar.dev/upstream';

/** Which version of HTTP is spoken to the upstream: `auto`, `http1`, `h2` or `h2c`. */
export const PROTOCOL = 'token-sidecar.dev/protocol';

/** Hosts that get the token, by commas, each with an optional port: their TLS is intercepted. Needs the mode `forward`, `hosts` or `redirect`. */
export const HOSTS = 'token-sidecar.dev/hosts';

/** Names of TokenProfiles of the pod's namespace, or of ClusterTokenProfiles, by commas. */
export const PROFILE = 'token-sidecar.dev/profile';

/**
 * Name of a ConfigMap with the key `token-sidecar.yaml`, for more than one route. The operator's defaults for provider
 * and upstream then do not apply.
 */
export const CONFIG_MAP = 'token-sidecar.dev/config-map';

/** Name of a ConfigMap with the key `ca.crt`: CAs in PEM that the sidecar trusts besides the public ones. */
export const CA_CONFIG_MAP = 'token-sidecar.dev/ca-config-map';

/**
 * `reverse`: the app calls the sidecar. `forward`: the app uses the sidecar as its HTTP proxy; needs hosts or a
 * ConfigMap. `hosts`: host names lead to the sidecar. `redirect`: the system sends connections to it, set up by an init
 * container with NET_ADMIN.
 */
export const MODE = 'token-sidecar.dev/mode';

/** `"true"`: an init container that keeps running, Kubernetes 1.29 and later. `"false"`: a container beside the others. */
export const NATIVE_SIDECAR = 'token-sidecar.dev/native-sidecar';

/** CPU requested for the sidecar. */
export const CPU_REQUEST = 'token-sidecar.dev/cpu-request';

/** CPU limit of the sidecar. None by default: throttling would delay every request of the app. */
export const CPU_LIMIT = 'token-sidecar.dev/cpu-limit';

/** Memory requested for the sidecar. */
export const MEMORY_REQUEST = 'token-sidecar.dev/memory-request';

/** Memory limit of the sidecar. */
export const MEMORY_LIMIT = 'token-sidecar.dev/memory-limit';

/** Image of the sidecar. */
export const IMAGE = 'token-sidecar.dev/image';

/** Log level of the sidecar. */
export const LOG_LEVEL = 'token-sidecar.dev/log-level';

/** Written by the injector, always `injected`: a second pass does nothing. */
export const STATUS = 'token-sidecar.dev/status';

/** Written by the injector: the sidecar's configuration file that the profiles resolve to. */
export const CONFIGURATION = 'token-sidecar.dev/configuration';

/** Written by the injector: the profiles that the pod was made with, each with its generation. */
export const PROFILES_IN_USE = 'token-sidecar.dev/profiles-in-use';

/** Written by the injector: CAs in PEM by which the sidecar verifies the broker. */
export const BROKER_CA = 'token-sidecar.dev/broker-ca';

/** Annotations that only the injector writes. */
export const WRITTEN = [CONFIGURATION, PROFILES_IN_USE, BROKER_CA] as const;

/** The value of `STATUS`. */
export const INJECTED = 'injected';

export const ANNOTATIONS = [
  INJECT,
  SECRET,
  AUTH_URL,
  REALM,
  SCOPE,
  AUDIENCE,
  UPSTREAM,
  PROTOCOL,
  HOSTS,
  PROFILE,
  CONFIG_MAP,
  CA_CONFIG_MAP,
  MODE,
  NATIVE_SIDECAR,
  CPU_REQUEST,
  CPU_LIMIT,
  MEMORY_REQUEST,
  MEMORY_LIMIT,
  IMAGE,
  LOG_LEVEL,
  STATUS,
  CONFIGURATION,
  PROFILES_IN_USE,
  BROKER_CA,
] as const;

export type Annotation = (typeof ANNOTATIONS)[number];

/** On the namespace: `enabled` or `disabled`. The webhook's selector decides about a namespace without it. */
export const NAMESPACE_LABEL = 'token-sidecar.dev/injection';

/** On pods with resolved profiles, always `true`, to find them again. */
export const PROFILE_LABEL = 'token-sidecar.dev/has-profile';

/** Set by the kubelet on the API server's copy of a static pod. */
export const MIRROR_POD = 'kubernetes.io/config.mirror';

/** The annotations that some scrapers look for. */
export const PROMETHEUS = {
  scrape: 'prometheus.io/scrape',
  port: 'prometheus.io/port',
  path: 'prometheus.io/path',
} as const;

/** Names of Secrets and ConfigMaps (RFC 1123 subdomain). */
export const objectName: ValueFormat<string> = {
  expected: 'a name of lower-case letters, digits, "-" and "."',
  parse: (text) =>
    text.length <= 253 && /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/.test(text)
      ? text
      : undefined,
};

/** Not a whole grammar: obvious mistakes are refused, and the kubelet judges the rest. */
export const imageReference: ValueFormat<string> = {
  expected: 'an image such as ghcr.io/token-sidecar/token-sidecar:0.1.0',
  parse: (text) => (/^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,1000}$/.test(text) ? text : undefined),
};

/** One value of the grant. Control characters would be a mistake in any of them. */
export const grantValue: ValueFormat<string> = {
  expected: 'text that is not empty, without control characters',
  parse: (text) =>
    text.trim() !== '' && [...text].every((character) => character >= ' ') ? text : undefined,
};

/** The API server's limit for a name after the prefix; a longer one is no mistyped name of ours. */
const MAX_OWN_NAME = 63;

/** A suggestion takes time, and an unchecked pod may have any number of names. */
const MAX_SUGGESTIONS = 10;

/** Unknown names with our prefix: they may be mistyped. */
export function unknownAnnotations(annotations: Readonly<Record<string, string>>): Problem[] {
  const names = ANNOTATIONS.map((name) => name.slice(ANNOTATION_PREFIX.length));
  return Object.keys(annotations)
    .filter((name) => name.startsWith(ANNOTATION_PREFIX))
    .map((name) => name.slice(ANNOTATION_PREFIX.length))
    .filter((own) => !names.includes(own))
    .map((own, index) => {
      const suggests = index < MAX_SUGGESTIONS && own.length <= MAX_OWN_NAME;
      const suggestion = suggests ? didYouMean(own, names, ANNOTATION_PREFIX) : '';
      return {
        key: `${ANNOTATION_PREFIX}${own.slice(0, MAX_OWN_NAME)}`,
        expected: `an annotation that there is${suggestion}`,
      };
    });
}
