/** What can be wrong with a configuration. Each kind has a stable code and a remedy. */

import { SidecarError } from './errors.ts';
import { quoted } from './log/redacted-text.ts';

export interface Problem {
  /** `--listen`, `TOKEN_SIDECAR_AUTH_URL`, `routes[0].upstream`. */
  readonly key: string;
  /** Left out if it could be a secret. */
  readonly value?: string;
  /** `a list`, instead of a value that is not shown. */
  readonly kind?: string;
  /** A noun phrase or a short sentence. */
  readonly expected: string;
  /** `invalid_value` or `missing_value` by default. */
  readonly code?: ProblemCode;
  /** A sentence, if there is more to do than the code says. */
  readonly remedy?: string;
  /** The probable setting, which is not reported as missing. */
  readonly meant?: string;
  /** Any of them would replace a missing one. */
  readonly instead?: readonly string[];
  readonly place?: Place;
  /** Where the same stands before. */
  readonly earlier?: Place;
}

export interface Place {
  readonly file: string;
  /** Both from 1. */
  readonly line: number;
  readonly column: number;
  readonly frame: Frame;
}

interface Frame {
  readonly text: string;
  /** Index in `text`, and characters from there: at least one. */
  readonly from: number;
  readonly length: number;
}

export class ConfigurationError extends SidecarError<'configuration'> {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super('configuration', problems.map(describeProblem).join('\n'));
    this.problems = problems;
  }
}

export function codeOf({ code, value }: Problem): ProblemCode {
  return code ?? (value === undefined ? 'missing_value' : 'invalid_value');
}

export function remedyOf(problem: Problem): string {
  const code = codeOf(problem);
  if (problem.remedy !== undefined) return problem.remedy;
  return code === 'missing_value' ? `Add ${problem.key.split('.').at(-1)}.` : PROBLEM_CODES[code].remedy;
}

/** `routes[0].upstream: "ftp://x": expected an http or https URL`, or `scope: expected a string, not a list` */
export function describeProblem({ key, value, kind, expected }: Problem): string {
  if (kind !== undefined) return `${key}: expected ${expected}, not ${kind}`;
  return value === undefined
    ? `${key}: expected ${expected}`
    : `${key}: ${quoted(value, key)}: expected ${expected}`;
}

/** `token-sidecar explain CODE` tells more: src/cli/explain/explanations.ts. */
interface ProblemKind {
  /** A heading. */
  readonly title: string;
  /** One sentence. */
  readonly remedy: string;
}

export const PROBLEM_CODES = {
  file_unreadable: {
    title: 'A file cannot be read',
    remedy: 'Check that the path is right, that it is a regular file, and that user 65532 may read it.',
  },
  file_not_text: {
    title: 'A configuration file holds characters that no text has',
    remedy: 'Save the file as UTF-8 text, without control characters.',
  },
  file_not_a_mapping: {
    title: 'A configuration file is no mapping of settings',
    remedy: 'Check that it is the right file: its top level has keys such as credentials: and routes:.',
  },
  invalid_yaml: {
    title: 'A file is not valid YAML or JSON',
    remedy: 'Mend the syntax at this place, or just before it.',
  },
  duplicate_key: {
    title: 'A key stands twice in one mapping',
    remedy: 'Keep one of the two.',
  },
  tab_indentation: {
    title: 'Lines are indented by tabs',
    remedy: 'Indent by spaces: YAML allows no tabs there.',
  },
  unknown_alias: {
    title: 'An alias names an anchor that there is not',
    remedy: 'Put quotes around text that begins with *, or define the anchor before this place.',
  },
  too_many_aliases: {
    title: 'Aliases make the file larger than it may be',
    remedy: 'Write the settings out instead of repeating them by aliases.',
  },
  too_deep: {
    title: 'A file is nested too deeply',
    remedy: 'Check that it is the right file: no setting is more than six levels deep.',
  },
  unknown_key: {
    title: 'There is no setting of this name here',
    remedy: 'Correct the name, or remove the line; the reference of the configuration file lists all keys.',
  },
  missing_value: {
    title: 'A setting is missing',
    remedy: 'Add the setting.',
  },
  wrong_type: {
    title: 'A value is of the wrong kind',
    remedy: 'Write the kind of value that is expected.',
  },
  invalid_value: {
    title: 'A value is not one that the setting can have',
    remedy: 'Write a value of the kind that is expected.',
  },
  unknown_word: {
    title: 'A value is none of the words that the setting can have',
    remedy: 'Use one of the words, written as they stand here.',
  },
  invalid_url: {
    title: 'A value is not a URL that can be used',
    remedy:
      'Write the whole URL with http:// or https://; user, password, query and fragment have no place in it.',
  },
  invalid_duration: {
    title: 'A value is not a duration',
    remedy: 'Write a number with its unit, such as 500ms, 30s or 5m.',
  },
  invalid_size: {
    title: 'A value is not a size',
    remedy: 'Write a number of bytes, or one with Ki, Mi or Gi.',
  },
  invalid_address: {
    title: 'A value is not an address to listen on',
    remedy: 'Write host and port, such as 127.0.0.1:15080.',
  },
  conflicting_settings: {
    title: 'Two settings exclude each other',
    remedy: 'Keep the one that you mean and remove the other.',
  },
  setting_without_use: {
    title: 'A setting has no use beside another one',
    remedy: 'Remove it, or change the setting that it depends on.',
  },
  ignored_setting: {
    title: 'A flag or variable would have no effect',
    remedy: 'Remove it, or name an entry of the file "default": flags and variables set that one alone.',
  },
  unknown_variable: {
    title: 'There is no variable of this name',
    remedy:
      'Correct the name, or remove the variable; token-sidecar COMMAND --help lists those of a command.',
  },
  duplicate_name: {
    title: 'Two entries have one name',
    remedy: 'Give each entry a name of its own.',
  },
  unknown_credential: {
    title: 'A route uses a credential that there is not',
    remedy: 'Name one of the credentials in the file, or add one of this name.',
  },
  unreachable_route: {
    title: 'No request ever gets to a route',
    remedy: 'Move the more specific one before the one that takes its requests.',
  },
  insecure_token_url: {
    title: 'The client secret would travel in clear text',
    remedy: 'Use https.',
  },
  protocol_mismatch: {
    title: 'The version of HTTP does not go with the URL',
    remedy: 'Write h2 for https URLs, h2c for http URLs, or auto.',
  },
  reserved_parameter: {
    title: 'A parameter or claim is made by the sidecar itself',
    remedy: 'Use the setting for it, if there is one, and remove it here.',
  },
  invalid_pem: {
    title: 'A file holds no PEM certificate, or no private key',
    remedy: 'Check that the path names a file with -----BEGIN CERTIFICATE-----.',
  },
  incomplete_tls: {
    title: 'A client certificate has no key, or a key no certificate',
    remedy: 'Give certFile and keyFile together.',
  },
  address_in_use: {
    title: 'Another program listens on an address',
    remedy: 'End that program, or choose another port.',
  },
  address_unavailable: {
    title: 'An address cannot be listened on',
    remedy: 'Choose an address of this machine, and a port of at least 1024.',
  },
} as const satisfies Record<string, ProblemKind>;

export type ProblemCode = keyof typeof PROBLEM_CODES;
