/** Exit statuses after sysexits.h. Only `src/launcher.ts`, which an old Node reads, repeats one: 78. */

import type { CommandErrorCode, SidecarError } from './errors.ts';

export const EXIT_STATUS_OF = {
  usage: 64,
  provider_unavailable: 69,
  kubernetes_api: 69,
  internal: 70,
  credentials_rejected: 77,
  configuration: 78,
} as const satisfies Readonly<Record<CommandErrorCode, number>>;

type ExitStatus = 0 | (typeof EXIT_STATUS_OF)[CommandErrorCode];

interface Meaning {
  readonly word: string;
  readonly title: string;
  readonly text: string;
  readonly remedy?: string;
}

export const EXIT_STATUSES: Readonly<Record<ExitStatus, Meaning>> = {
  0: {
    word: 'success or SIGTERM',
    title: 'Success',
    text: 'Also after SIGTERM, SIGINT and POST /quitquitquit.',
  },
  64: {
    word: 'usage',
    title: 'The command line is not understood',
    text: 'There is no such flag or command, or a flag lacks its value.',
    remedy: 'Read token-sidecar COMMAND --help.',
  },
  69: {
    word: 'provider or upstream unavailable',
    title: 'The identity provider, an upstream or the Kubernetes API is unavailable',
    text: 'It did not answer check, wait or the injector. Or proxy, ended by SIGTERM, never had a token because of it.',
    remedy: 'Run token-sidecar check in the pod; look at NetworkPolicies and DNS.',
  },
  70: {
    word: 'internal',
    title: 'An unexpected error',
    text: 'The stack is on standard error.',
    remedy: 'Report it with the stack; it holds no secret.',
  },
  77: {
    word: 'credentials rejected',
    title: 'The identity provider rejected the credentials',
    text: 'The secret is wrong or rotated, or the client is disabled or may not use this grant or scope.',
    remedy: 'Compare the mounted Secret with the client at the provider.',
  },
  78: {
    word: 'configuration',
    title: 'The configuration is not valid',
    text: 'Every mistake is listed on standard error, with its code.',
    remedy: 'Correct what is listed and start again.',
  },
};

/** Undefined for an unforeseen error. Each bundle has its own copy of the class, so the shape decides. */
export function exitStatusOf(error: unknown): number | undefined {
  const { name, exitCode } = (error ?? {}) as Partial<SidecarError>;
  return name === 'SidecarError' ? exitCode : undefined;
}

const BY_URGENCY = [
  'configuration',
  'credentials_rejected',
  'provider_unavailable',
] as const satisfies CommandErrorCode[];

/** 0 without failures. */
export function exitStatusOfAll(failures: readonly (typeof BY_URGENCY)[number][]): number {
  const worst = BY_URGENCY.find((failure) => failures.includes(failure));
  return worst === undefined ? 0 : EXIT_STATUS_OF[worst];
}
