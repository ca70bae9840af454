/** What the app's containers get to use the sidecar. Their own settings stay. */

import { TRUST_VARIABLES } from '../../platform/trust-variables.ts';
import type { SidecarMode } from './annotations.ts';
import { type AddOperation, add, append, pointer } from './json-patch.ts';
import { type Container, type EnvironmentVariable, itemsOf, PORT, TOKENS, TRUST } from './pod.ts';
import type { SidecarSettings } from './sidecar-settings.ts';

type LiteralVariable = Required<Pick<EnvironmentVariable, 'name' | 'value'>>;

export type AppSettings = Pick<SidecarSettings, 'mode' | 'intercepts' | 'tokenFiles'>;

/** Both spellings, because clients disagree. */
export function appEnvironment({
  mode,
  intercepts,
}: Omit<AppSettings, 'tokenFiles'>): readonly LiteralVariable[] {
  if (mode === 'reverse') return [];
  if (mode === 'hosts' || mode === 'redirect') return intercepts ? trustVariables() : [];
  const proxy = `http://127.0.0.1:${PORT.proxy}`;
  const direct = 'localhost,127.0.0.1,::1';
  return [
    { name: 'HTTP_PROXY', value: proxy },
    { name: 'http_proxy', value: proxy },
    { name: 'NO_PROXY', value: direct },
    { name: 'no_proxy', value: direct },
    ...(intercepts ? [...proxyVariables(), ...trustVariables()] : []),
  ];
}

/** @param isServed whether the sidecar runs while the container does. */
export function appContainersPatch(
  list: 'containers' | 'initContainers',
  containers: readonly Container[] | null | undefined,
  settings: AppSettings,
  isServed: (container: Container, before: readonly Container[]) => boolean = () => true,
): AddOperation[] {
  const variables = appEnvironment(settings);
  const intercepts = settings.mode !== 'reverse' && settings.intercepts;
  const mounts = sidecarMounts(settings);
  return itemsOf(containers).flatMap((container, index, all) => {
    if (!isServed(container, all.slice(0, index))) return [];
    const path = ['spec', list, index];
    const own = new Set(itemsOf(container.env).map(({ name }) => name));
    const missing = variables.filter(({ name }) => !own.has(name));
    const java = intercepts ? javaPatch(container, path, settings.mode) : { changed: [], added: [] };
    return [
      ...java.changed,
      ...append(container.env, [...path, 'env'], [...missing, ...java.added]),
      ...mountsPatch(container, path, mounts),
    ];
  });
}

interface JavaPatch {
  readonly changed: readonly AddOperation[];
  readonly added: readonly EnvironmentVariable[];
}

function javaPatch({ env }: Container, path: readonly (string | number)[], mode: SidecarMode): JavaPatch {
  const at = itemsOf(env).findIndex(({ name }) => name === JAVA_OPTIONS);
  const own = itemsOf(env)[at];
  // From a Secret or ConfigMap: the value is not known.
  if (own !== undefined && own.value === undefined) return { changed: [], added: [] };
  const value = javaOptions(own?.value ?? '', mode === 'forward' ? 'by proxy' : 'as it is');
  if (value === undefined) return { changed: [], added: [] };
  if (own === undefined) return { changed: [], added: [{ name: JAVA_OPTIONS, value }] };
  return { changed: [add(pointer(...path, 'env', at, 'value'), value)], added: [] };
}

export function sidecarMounts({ mode, intercepts, tokenFiles }: AppSettings) {
  return [
    ...(mode !== 'reverse' && intercepts
      ? [{ name: TRUST.volume, mountPath: TRUST.directory, readOnly: true }]
      : []),
    ...(tokenFiles ? [{ name: TOKENS.volume, mountPath: TOKENS.directory, readOnly: true }] : []),
  ];
}

function mountsPatch(
  { volumeMounts }: Container,
  path: readonly (string | number)[],
  mounts: ReturnType<typeof sidecarMounts>,
): AddOperation[] {
  const own = new Set(itemsOf(volumeMounts).map(({ name }) => name));
  const missing = mounts.filter(({ name }) => !own.has(name));
  return append(volumeMounts, [...path, 'volumeMounts'], missing);
}

const FILES: Readonly<Record<(typeof TRUST_VARIABLES)[number]['effect'], string>> = {
  adds: 'ca.crt',
  replaces: 'bundle.pem',
};

function proxyVariables(): readonly LiteralVariable[] {
  const proxy = `http://127.0.0.1:${PORT.proxy}`;
  return [
    { name: 'HTTPS_PROXY', value: proxy },
    { name: 'https_proxy', value: proxy },
    // Without it Node ignores the others.
    { name: 'NODE_USE_ENV_PROXY', value: '1' },
  ];
}

function trustVariables(): readonly LiteralVariable[] {
  return TRUST_VARIABLES.map(({ name, effect }) => ({ name, value: `${TRUST.directory}/${FILES[effect]}` }));
}

/** The JVM ignores other variables, and prints a line about this one. */
export const JAVA_OPTIONS = 'JAVA_TOOL_OPTIONS';

const TRUST_STORE = `-Djavax.net.ssl.trustStore=${TRUST.directory}/truststore.p12`;
const TRUST_STORE_TYPE = '-Djavax.net.ssl.trustStoreType=PKCS12';

const PROXY_PROPERTIES = [
  '-Dhttp.proxyHost=127.0.0.1',
  `-Dhttp.proxyPort=${PORT.proxy}`,
  '-Dhttps.proxyHost=127.0.0.1',
  `-Dhttps.proxyPort=${PORT.proxy}`,
];

export function namesTrustStore(options: string): boolean {
  return options.includes(nameOf(TRUST_STORE));
}

type Way = 'by proxy' | 'as it is';

/** Undefined if no option is missing. */
function javaOptions(own: string, way: Way): string | undefined {
  // A store and its type belong together.
  const trust = namesTrustStore(own) ? [] : [TRUST_STORE, TRUST_STORE_TYPE];
  const proxy = way === 'by proxy' ? PROXY_PROPERTIES : [];
  const missing = [...trust, ...proxy.filter((property) => !own.includes(nameOf(property)))];
  if (missing.length === 0) return undefined;
  return [own, ...missing].filter((part) => part !== '').join(' ');
}

function nameOf(property: string): string {
  return property.slice(0, property.indexOf('=') + 1);
}
