/**
 * The table of annotations. A new one is a row here, and what it does to the pod is in `sidecar-settings.ts`. The compiler asks for
 * its flag in `../injection-defaults.ts` and its value in `sidecar-environment.ts`; `../profiles/resolve-entries.ts` applies what
 * it overrides. Its variable is a flag of `src/config/proxy-settings.ts`; a new flag is read in `resolve-config.ts` there, or for
 * the default credential in `resolve-credentials.ts`. `npm run generate` writes the reference.
 */

import { didYouMean } from '../../config/suggestion.ts';
import { formats, oneOf, PROOFS_OF_POSSESSION, type ValueFormat } from '../../config/values.ts';
import { LOG_LEVELS } from '../../platform/log/logger.ts';
import type { Problem } from '../../platform/problems.ts';
import type { INJECTION_SETTINGS, SidecarResources } from '../injection-defaults.ts';

/** An unlisted name with this prefix may be mistyped, and is refused. */
export const ANNOTATION_PREFIX = 'token-sidecar.dev/';

export const MODES = {
  all: ['reverse', 'forward', 'hosts', 'redirect'],
  /** `redirect` adds a container that changes the pod's network. */
  usual: ['reverse', 'forward', 'hosts'],
  default: ['reverse', 'forward'],
} as const;

export type SidecarMode = (typeof MODES.all)[number];

const MAX_PROFILES = 16;

/** By commas, each once. */
const profileNames: ValueFormat<readonly string[]> = {
  expected: `1 to ${MAX_PROFILES} names of profiles, by commas, each once`,
  parse(text) {
    const names = text.split(',').map((name) => name.trim());
    const isRight =
      names.length <= MAX_PROFILES &&
      new Set(names).size === names.length &&
      names.every((name) => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name));
    return isRight ? names : undefined;
  },
};

/** RFC 1123 subdomain. */
export const objectName: ValueFormat<string> = {
  expected: 'a name of lower-case letters, digits, "-" and "."',
  parse: (text) =>
    text.length <= 253 && /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/.test(text)
      ? text
      : undefined,
};

/** The kubelet judges the rest. */
export const imageReference: ValueFormat<string> = {
  expected: 'an image such as ghcr.io/token-sidecar/token-sidecar:0.1.0',
  parse: (text) => (/^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,1000}$/.test(text) ? text : undefined),
};

export const grantValue: ValueFormat<string> = {
  expected: 'text that is not empty, without control characters',
  parse: (text) =>
    text.trim() !== '' && [...text].every((character) => character >= ' ') ? text : undefined,
};

const SUFFIXES: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

interface Quantity {
  readonly text: string;
  /** In cores or bytes. */
  readonly amount: number;
}

/** Also `1e+08`, as Helm writes it. Not negative. */
export const quantity: ValueFormat<Quantity> = {
  expected: 'a quantity such as 10m, 0.5 or 64Mi',
  parse(text) {
    const [, number, suffix = '', exponent = ''] =
      /^(\d{1,15}(?:\.\d{1,20})?)(?:([numkMGTPE]|[KMGTPE]i)|([eE][+-]?\d{1,3}))?$/.exec(text) ?? [];
    if (number === undefined) return undefined;
    return { text, amount: Number(number + exponent) * (SUFFIXES[suffix] as number) };
  },
};

export const ANNOTATION = {
  inject: 'token-sidecar.dev/inject',
  secret: 'token-sidecar.dev/secret',
  authUrl: 'token-sidecar.dev/auth-url',
  realm: 'token-sidecar.dev/realm',
  scope: 'token-sidecar.dev/scope',
  audience: 'token-sidecar.dev/audience',
  proofOfPossession: 'token-sidecar.dev/proof-of-possession',
  upstream: 'token-sidecar.dev/upstream',
  protocol: 'token-sidecar.dev/protocol',
  hosts: 'token-sidecar.dev/hosts',
  profile: 'token-sidecar.dev/profile',
  configMap: 'token-sidecar.dev/config-map',
  caConfigMap: 'token-sidecar.dev/ca-config-map',
  mode: 'token-sidecar.dev/mode',
  nativeSidecar: 'token-sidecar.dev/native-sidecar',
  cpuRequest: 'token-sidecar.dev/cpu-request',
  cpuLimit: 'token-sidecar.dev/cpu-limit',
  memoryRequest: 'token-sidecar.dev/memory-request',
  memoryLimit: 'token-sidecar.dev/memory-limit',
  image: 'token-sidecar.dev/image',
  logLevel: 'token-sidecar.dev/log-level',
  status: 'token-sidecar.dev/status',
  configuration: 'token-sidecar.dev/configuration',
  profilesInUse: 'token-sidecar.dev/profiles-in-use',
  brokerCa: 'token-sidecar.dev/broker-ca',
} as const;

type ProfilePart = 'credential' | 'route' | 'hosts';

type Row = Described & (Told | { readonly variable?: undefined; readonly overrides?: ProfilePart });

interface Described {
  readonly text: string;
  readonly format?: ValueFormat<unknown>;
  /** For pods without the annotation. */
  readonly default?: keyof typeof INJECTION_SETTINGS;
  /** A pod that comes with it is refused. */
  readonly written?: true;
}

/** Becomes a variable of the sidecar, or with a profile a part of its file. */
interface Told {
  /** Behind `TOKEN_SIDECAR_`. */
  readonly variable: string;
  /** `nothing`: no profile says this. */
  readonly overrides: ProfilePart | 'nothing';
}

export const ANNOTATION_TABLE = {
  [ANNOTATION.inject]: { text: '`"true"` asks for the sidecar, `"false"` declines it' },
  [ANNOTATION.secret]: {
    format: objectName,
    default: 'default-secret',
    overrides: 'credential',
    text: 'name of the Secret with `client_id` and `client_secret`',
  },
  [ANNOTATION.authUrl]: {
    format: formats.serverUrl,
    default: 'default-auth-url',
    variable: 'AUTH_URL',
    overrides: 'credential',
    text: 'base URL of the identity provider; `https`, unless `--default-allow-insecure-token-url`',
  },
  [ANNOTATION.realm]: {
    format: grantValue,
    default: 'default-realm',
    variable: 'REALM',
    overrides: 'credential',
    text: 'realm',
  },
  [ANNOTATION.scope]: {
    format: grantValue,
    default: 'default-scope',
    variable: 'SCOPE',
    overrides: 'credential',
    text: 'sent with the grant',
  },
  [ANNOTATION.audience]: {
    format: grantValue,
    default: 'default-audience',
    variable: 'AUDIENCE',
    overrides: 'credential',
    text: 'sent with the grant',
  },
  [ANNOTATION.proofOfPossession]: {
    format: oneOf(PROOFS_OF_POSSESSION),
    variable: 'PROOF_OF_POSSESSION',
    overrides: 'credential',
    text: '`dpop` [binds tokens to a key](../how-to/bind-tokens.md) of the sidecar; `none` is the default',
  },
  [ANNOTATION.upstream]: {
    format: formats.upstream,
    default: 'default-upstream',
    variable: 'UPSTREAM',
    overrides: 'route',
    text: "where the app's requests go",
  },
  [ANNOTATION.protocol]: {
    format: formats.upstreamProtocol,
    variable: 'PROTOCOL',
    overrides: 'route',
    text: '[the version of HTTP to speak to it](upstreams.md#which-version-of-http): `auto` (default), `http1`, `h2` or `h2c`; beside a ConfigMap, of its route `default`, which must exist',
  },
  [ANNOTATION.profile]: {
    format: profileNames,
    text: 'names of [profiles](profiles.md), by commas; the annotations above override them',
  },
  [ANNOTATION.configMap]: {
    format: objectName,
    text: 'name of a ConfigMap with the key `token-sidecar.yaml`; [changes of it](reloading.md) reach running pods',
  },
  [ANNOTATION.caConfigMap]: {
    format: objectName,
    default: 'default-ca-config-map',
    text: 'name of a ConfigMap with the key `ca.crt`: CAs in PEM that the sidecar trusts besides the public ones, from its next start; refused if hosts are limited',
  },
  [ANNOTATION.hosts]: {
    variable: 'HOSTS',
    overrides: 'hosts',
    text: 'hosts that get the token, by commas, each with an optional port; `*.suffix` for names below: [interception](interception.md#in-an-injected-pod). Needs a native sidecar and the mode `forward`, `redirect` or `hosts` (no `*`); not beside a ConfigMap',
  },
  [ANNOTATION.mode]: {
    format: oneOf(MODES.all),
    default: 'default-mode',
    text: '`reverse`, `forward`, `hosts` or `redirect` ([which one](../how-to/which-mode.md)); `forward` needs the annotation `hosts` or a ConfigMap, [`hosts`](interception.md#without-a-proxy-the-mode-hosts) and [`redirect`](interception.md#by-the-kernel-the-mode-redirect) need the annotation',
  },
  [ANNOTATION.nativeSidecar]: {
    format: oneOf(['true', 'false']),
    default: 'default-native-sidecar',
    text: '`"true"` or `"false"`; by default the cluster\'s version decides',
  },
  [ANNOTATION.cpuRequest]: {
    format: quantity,
    default: 'default-cpu-request',
    text: 'CPU requested, a quantity',
  },
  [ANNOTATION.cpuLimit]: {
    format: quantity,
    default: 'default-cpu-limit',
    text: 'CPU limit; none by default',
  },
  [ANNOTATION.memoryRequest]: {
    format: quantity,
    default: 'default-memory-request',
    text: 'memory requested',
  },
  [ANNOTATION.memoryLimit]: { format: quantity, default: 'default-memory-limit', text: 'memory limit' },
  [ANNOTATION.image]: { format: imageReference, default: 'default-image', text: 'image of the sidecar' },
  [ANNOTATION.logLevel]: {
    format: oneOf(LOG_LEVELS),
    default: 'default-log-level',
    variable: 'LOG_LEVEL',
    overrides: 'nothing',
    text: 'log level of the sidecar',
  },
  [ANNOTATION.status]: { written: true, text: '`injected`, written by the injector' },
  [ANNOTATION.configuration]: {
    written: true,
    text: 'the configuration that the profiles resolve to, written by the injector',
  },
  [ANNOTATION.profilesInUse]: {
    written: true,
    text: 'the profiles and their generations, written by the injector',
  },
  [ANNOTATION.brokerCa]: {
    written: true,
    text: 'CAs in PEM by which the sidecar verifies the broker, written by the injector',
  },
} as const satisfies Readonly<Record<string, Row>>;

export type Annotation = keyof typeof ANNOTATION_TABLE;

type Table = typeof ANNOTATION_TABLE;

export type ReadAnnotation = {
  [Name in Annotation]: Table[Name] extends { format: unknown } ? Name : never;
}[Annotation];

export type AnnotationValue<Name extends ReadAnnotation> = Table[Name] extends {
  format: ValueFormat<infer Value>;
}
  ? Value
  : never;

export type AnnotationVariable = {
  [Name in Annotation]: Table[Name] extends { variable: infer V } ? V : never;
}[Annotation];

export type OverridingAnnotation = {
  [Name in Annotation]: Table[Name] extends { overrides: ProfilePart } ? Name : never;
}[Annotation];

export type WrittenAnnotation = {
  [Name in Annotation]: Table[Name] extends { written: true } ? Name : never;
}[Annotation];

const ANNOTATIONS = Object.keys(ANNOTATION_TABLE) as readonly Annotation[];

export const WRITTEN = ANNOTATIONS.filter((name) => 'written' in ANNOTATION_TABLE[name]);

export function overriding(part: ProfilePart): readonly OverridingAnnotation[] {
  const rows: Readonly<Record<Annotation, Row>> = ANNOTATION_TABLE;
  return ANNOTATIONS.filter((name): name is OverridingAnnotation => rows[name].overrides === part);
}

export const LABEL = {
  /** `enabled` or `disabled`. Without it the webhook's selector decides. */
  namespace: 'token-sidecar.dev/injection',
  /** Always `true`, to find pods with resolved profiles. */
  profile: 'token-sidecar.dev/has-profile',
} as const;

/** Set by the kubelet on the API server's copy of a static pod. */
export const MIRROR_POD = 'kubernetes.io/config.mirror';

/** The API server's limit after the prefix. */
const MAX_OWN_NAME = 63;

/** An unchecked pod may have any number of unknown names; only these are named. */
const MAX_UNKNOWN = 49;

/** How many of them get a suggestion. */
const MAX_SUGGESTIONS = 10;

const OWN_NAMES = ANNOTATIONS.map((name) => name.slice(ANNOTATION_PREFIX.length));

export function unknownAnnotations(annotations: Readonly<Record<string, string>>): Problem[] {
  const known = new Set<string>(ANNOTATIONS);
  const unknown = Object.keys(annotations).filter(
    (name) => name.startsWith(ANNOTATION_PREFIX) && !known.has(name),
  );
  const problems = unknown.slice(0, MAX_UNKNOWN).map((name, index) => {
    const own = name.slice(ANNOTATION_PREFIX.length);
    const suggests = index < MAX_SUGGESTIONS && own.length <= MAX_OWN_NAME;
    const suggestion = suggests ? didYouMean(own, OWN_NAMES, ANNOTATION_PREFIX) : '';
    return {
      key: `${ANNOTATION_PREFIX}${own.slice(0, MAX_OWN_NAME)}`,
      expected: `an annotation that there is${suggestion}`,
    };
  });
  const further = unknown.length - problems.length;
  if (further > 0) {
    problems.push({
      key: `${ANNOTATION_PREFIX}…`,
      expected: `none of ${further} further unknown annotations`,
    });
  }
  return problems;
}

type QuantityAnnotation =
  | typeof ANNOTATION.cpuRequest
  | typeof ANNOTATION.cpuLimit
  | typeof ANNOTATION.memoryRequest
  | typeof ANNOTATION.memoryLimit;

export function resolveResources(
  read: (name: QuantityAnnotation) => Quantity | undefined,
  defaults: SidecarResources,
  problems: Problem[],
): SidecarResources {
  const pairs = [
    ['cpu', ANNOTATION.cpuRequest, ANNOTATION.cpuLimit],
    ['memory', ANNOTATION.memoryRequest, ANNOTATION.memoryLimit],
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
