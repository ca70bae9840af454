/** What the sidecar is told by its environment. */

import type { UpstreamProtocol } from '../../config/config.ts';
import type { LogLevel } from '../../log/logger.ts';
import { captureSetting } from './captured-hosts.ts';
import { CA_DIRECTORY, CA_KEY, TRUST_DIRECTORY } from './names.ts';
import type { EnvironmentVariable } from './pod.ts';

/** The image switches Node's foreign-function interface off for all who do not need it. */
export const WITH_FOREIGN_FUNCTIONS = { name: 'NODE_OPTIONS', value: '' } as const;

export interface ToldSettings {
  /** Path of the configuration file, where there is one. */
  readonly config?: string | undefined;
  readonly authUrl?: string | undefined;
  readonly realm?: string | undefined;
  readonly allowInsecureTokenUrl?: boolean;
  readonly upstream?: string | undefined;
  readonly protocol?: UpstreamProtocol | undefined;
  /** Whose TLS is intercepted, as the annotation has them. */
  readonly hosts?: string | undefined;
  /** In whose place it listens, as the annotation has them. */
  readonly captured?: string | undefined;
  /** Whose connections the system sends to it, as the annotation has them. */
  readonly redirected?: string | undefined;
  readonly scope?: string | undefined;
  readonly audience?: string | undefined;
}

export interface PodSettings {
  readonly intercepts: boolean;
  readonly logLevel: LogLevel;
  /** CAs are mounted that are trusted besides the public ones. */
  readonly trustsOwnAuthorities: boolean;
}

export function sidecarEnvironment(
  told: ToldSettings,
  { intercepts, logLevel, trustsOwnAuthorities }: PodSettings,
): readonly EnvironmentVariable[] {
  const values: Readonly<Record<string, string | undefined>> = {
    CONFIG: told.config,
    AUTH_URL: told.authUrl,
    REALM: told.realm,
    ALLOW_INSECURE_TOKEN_URL: told.allowInsecureTokenUrl === true ? 'true' : undefined,
    UPSTREAM: told.upstream,
    PROTOCOL: told.protocol,
    HOSTS: told.hosts,
    CAPTURE_HOSTS: told.captured === undefined ? undefined : captureSetting(told.captured),
    REDIRECT_HOSTS: told.redirected,
    TRUST_DIR: intercepts ? TRUST_DIRECTORY : undefined,
    SCOPE: told.scope,
    AUDIENCE: told.audience,
    LOG_LEVEL: logLevel,
  };
  const own = Object.entries(values).flatMap(([name, value]) =>
    value === undefined ? [] : [{ name: `TOKEN_SIDECAR_${name}`, value: withoutExpansion(value) }],
  );
  // Node reads it at its start, and trusts what is in it beside the public CAs.
  const authorities = { name: 'NODE_EXTRA_CA_CERTS', value: `${CA_DIRECTORY}/${CA_KEY}` };
  return [
    ...own,
    ...(trustsOwnAuthorities ? [authorities] : []),
    ...(told.redirected === undefined ? [] : [WITH_FOREIGN_FUNCTIONS]),
    ...POD_FIELDS,
  ];
}

/** What the pod is called, for the status page, by the downward API. */
const POD_FIELDS: readonly EnvironmentVariable[] = [
  { name: 'POD_NAME', fieldPath: 'metadata.name' },
  { name: 'POD_NAMESPACE', fieldPath: 'metadata.namespace' },
  { name: 'NODE_NAME', fieldPath: 'spec.nodeName' },
].map(({ name, fieldPath }) => ({ name, valueFrom: { fieldRef: { fieldPath } } }));

/**
 * The kubelet replaces `$(NAME)` in a value, and every `$$` by one dollar sign. So every one is doubled: of `$$(NAME)`
 * with one sign more it would make `$` and the variable.
 */
function withoutExpansion(value: string): string {
  return value.replaceAll('$', '$$$$');
}
