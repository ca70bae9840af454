import type { InjectionDefaults } from '../../../src/injector/injection-defaults.ts';
import { inject } from '../../../src/injector/pod/inject.ts';
import type { Namespace, Pod } from '../../../src/injector/pod/pod.ts';
import { judge, profilesOf } from '../../../src/injector/profile-rules.ts';
import type { ProfileKind, ValidatedProfile } from '../../../src/injector/profiles/profile.ts';
import { DEFAULTS } from '../defaults.ts';
import { patched } from '../patched.ts';

export interface WrittenProfile {
  readonly kind?: ProfileKind;
  readonly name: string;
  readonly namespace?: string;
  readonly generation?: number;
  readonly spec: unknown;
}

/** The least that is a profile. */
export const CREDENTIAL = {
  issuerUrl: 'https://login.example.com',
  secret: { name: 'oauth' },
};
export const ROUTE = { upstream: 'https://api.example.com' };

export const judged = ({ kind = 'TokenProfile', namespace = 'team', spec, ...rest }: WrittenProfile) =>
  judge({ kind, ...(kind === 'TokenProfile' ? { namespace } : {}), ...rest }, spec);

export interface Around {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly defaults?: Partial<InjectionDefaults>;
  readonly namespace?: Namespace;
  readonly spec?: Pod['spec'];
  readonly labels?: Readonly<Record<string, string>>;
}

/** What becomes of a pod that names all of the profiles. */
export function injectionBy(profiles: readonly WrittenProfile[], around: Around = {}) {
  const all: readonly ValidatedProfile[] = profiles.map(judged);
  const named = profiles.map(({ name }) => name).join(', ');
  const find = (kind: ProfileKind, name: string, namespace?: string) =>
    all.find(
      ({ identity }) => identity.kind === kind && identity.name === name && identity.namespace === namespace,
    );
  const source = {
    unread: () => undefined,
    namespaced: (namespace: string, name: string) => find('TokenProfile', name, namespace),
    cluster: (name: string) => find('ClusterTokenProfile', name),
    labels: () => around.labels,
  };
  const annotations = {
    'token-sidecar.dev/inject': 'true',
    'token-sidecar.dev/profile': named,
    ...around.annotations,
  };
  const pod: Pod = {
    metadata: { annotations },
    spec: { containers: [{ name: 'app' }], ...around.spec },
  };
  const defaults = { ...DEFAULTS, ...around.defaults };
  const injection = inject(pod, around.namespace ?? { name: 'team' }, defaults, {
    profiles: profilesOf(source),
  });
  return { pod, injection };
}

/** The patched pod, and the configuration that its sidecar gets. @throws what keeps it from being injected. */
export function injectedBy(profiles: readonly WrittenProfile[], around: Around = {}) {
  const { pod, injection } = injectionBy(profiles, around);
  if (injection.result !== 'injected') throw new Error(JSON.stringify(injection));
  const after = patched(pod, injection.patch);
  const { annotations } = after.metadata;
  return {
    pod: after,
    injection,
    configuration: JSON.parse(annotations['token-sidecar.dev/configuration'] ?? '{}') as Configuration,
  };
}

export interface Configuration {
  readonly credentials: readonly Readonly<Record<string, unknown>>[];
  readonly routes?: readonly Readonly<Record<string, unknown>>[];
  readonly forwardProxy?: { readonly allow: readonly Readonly<Record<string, unknown>>[] };
}

export function refusalBy(profiles: readonly WrittenProfile[], around: Around = {}): string {
  const { injection } = injectionBy(profiles, around);
  return injection.result === 'rejected' ? injection.message : injection.result;
}
