import type { UpstreamProtocol } from '../../config/config.ts';
import type { LogLevel } from '../../platform/log/logger.ts';
import type { AnnotationVariable } from './annotations.ts';
import { captureSetting } from './hosts-mode.ts';
import { CA, type EnvironmentVariable, TRUST } from './pod.ts';

/** The image disables Node's foreign-function interface by default. */
export const WITH_FOREIGN_FUNCTIONS = { name: 'NODE_OPTIONS', value: '' } as const;

interface SidecarEnvironment {
  readonly config?: string | undefined;
  readonly authUrl?: string | undefined;
  readonly realm?: string | undefined;
  readonly allowInsecureTokenUrl?: boolean;
  readonly upstream?: string | undefined;
  readonly protocol?: UpstreamProtocol | undefined;
  /** Whose TLS is intercepted, in the annotation's form. */
  readonly hosts?: string | undefined;
  /** In whose place the sidecar listens, in the annotation's form. */
  readonly captured?: string | undefined;
  /** Whose connections are redirected, in the annotation's form. */
  readonly redirected?: string | undefined;
  readonly scope?: string | undefined;
  readonly audience?: string | undefined;
  readonly proofOfPossession?: string | undefined;
}

type FurtherVariable =
  | 'CONFIG'
  | 'ALLOW_INSECURE_TOKEN_URL'
  | 'CAPTURE_HOSTS'
  | 'REDIRECT_HOSTS'
  | 'TRUST_DIR';

interface PodSettings {
  readonly intercepts: boolean;
  readonly logLevel: LogLevel;
  readonly trustsOwnAuthorities: boolean;
}

export function sidecarEnvironment(
  told: SidecarEnvironment,
  { intercepts, logLevel, trustsOwnAuthorities }: PodSettings,
): readonly EnvironmentVariable[] {
  const values: Readonly<Record<AnnotationVariable | FurtherVariable, string | undefined>> = {
    CONFIG: told.config,
    AUTH_URL: told.authUrl,
    REALM: told.realm,
    ALLOW_INSECURE_TOKEN_URL: told.allowInsecureTokenUrl === true ? 'true' : undefined,
    UPSTREAM: told.upstream,
    PROTOCOL: told.protocol,
    HOSTS: told.hosts,
    CAPTURE_HOSTS: told.captured === undefined ? undefined : captureSetting(told.captured),
    REDIRECT_HOSTS: told.redirected,
    TRUST_DIR: intercepts ? TRUST.directory : undefined,
    SCOPE: told.scope,
    AUDIENCE: told.audience,
    PROOF_OF_POSSESSION: told.proofOfPossession,
    LOG_LEVEL: logLevel,
  };
  const own = Object.entries(values).flatMap(([name, value]) =>
    value === undefined ? [] : [{ name: `TOKEN_SIDECAR_${name}`, value: withoutExpansion(value) }],
  );
  // Node reads it at its start.
  const authorities = { name: 'NODE_EXTRA_CA_CERTS', value: `${CA.directory}/${CA.key}` };
  return [
    ...own,
    ...(trustsOwnAuthorities ? [authorities] : []),
    ...(told.redirected === undefined ? [] : [WITH_FOREIGN_FUNCTIONS]),
    ...POD_FIELDS,
  ];
}

const POD_FIELDS: readonly EnvironmentVariable[] = [
  { name: 'POD_NAME', fieldPath: 'metadata.name' },
  { name: 'POD_NAMESPACE', fieldPath: 'metadata.namespace' },
  { name: 'NODE_NAME', fieldPath: 'spec.nodeName' },
].map(({ name, fieldPath }) => ({ name, valueFrom: { fieldRef: { fieldPath } } }));

/** The kubelet expands `$(NAME)`, and reads `$$` as one dollar sign. */
function withoutExpansion(value: string): string {
  return value.replaceAll('$', '$$$$');
}
