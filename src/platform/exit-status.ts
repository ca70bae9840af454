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
    text: 'The command did what it was asked for. What serves ends with 0 by SIGTERM, SIGINT and POST /quitquitquit, too: a Job whose sidecar ended with 143 would count as failed.',
  },
  64: {
    word: 'usage',
    title: 'The command line is not understood',
    text: 'A flag or command that there is not, a flag without its value, or a word that is no flag.',
    remedy: 'Read token-sidecar COMMAND --help.',
  },
  69: {
    word: 'provider or upstream unavailable',
    title: 'The identity provider, an upstream or the Kubernetes API is unavailable',
    text: 'The commands check and wait and the injector end with it when somebody does not answer; proxy does on SIGTERM where it never had a token because its provider did not answer.',
    remedy: 'Run token-sidecar check in the pod, and look at NetworkPolicies and DNS.',
  },
  70: {
    word: 'internal',
    title: 'An unexpected error',
    text: 'Something happened that was not foreseen; the stack stands on standard error.',
    remedy: 'Report it with the stack, which holds no secret.',
  },
  77: {
    word: 'credentials rejected',
    title: 'The identity provider rejected the credentials',
    text: 'The provider answered, and refused the client: a wrong or rotated secret, a client that is disabled or may not use this grant, a scope that it may not have.',
    remedy: 'Compare the mounted Secret with the client at the provider.',
  },
  78: {
    word: 'configuration',
    title: 'The configuration is not valid',
    text: 'Every mistake is listed on standard error, each with a code that token-sidecar explain knows.',
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
