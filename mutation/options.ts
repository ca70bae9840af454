import { parseArgs } from 'node:util';
import { ROOMS, type Room } from './rooms.ts';

/** What is mutated: rooms, files (or the directories they are in), what changed since a commit, or what CI would. */
export type Scope =
  | { readonly kind: 'rooms'; readonly rooms: readonly Room[] }
  | { readonly kind: 'paths'; readonly paths: readonly string[] }
  | { readonly kind: 'since'; readonly revision: string }
  | { readonly kind: 'recent' };

export interface MutationOptions {
  readonly scope: Scope;
  /** How many mutants at most, drawn by the seed; undefined for all. */
  readonly sample: number | undefined;
  readonly seed: string;
  /** How long at most; undefined for as long as it takes. */
  readonly minutes: number | undefined;
  /** Least share of mutants that the tests must notice, in per cent. */
  readonly threshold: number;
  readonly concurrency: number;
  /** Directories of the test files to run; undefined for those of the rooms. */
  readonly suites: readonly string[] | undefined;
}

/** @throws {Error} naming the flag that is wrong. */
export function readOptions(args: readonly string[]): MutationOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      room: { type: 'string', multiple: true },
      files: { type: 'string', multiple: true },
      'changed-since': { type: 'string' },
      recent: { type: 'boolean' },
      sample: { type: 'string' },
      seed: { type: 'string', default: '1' },
      minutes: { type: 'string' },
      threshold: { type: 'string', default: '90' },
      concurrency: { type: 'string', default: '2' },
      suites: { type: 'string' },
    },
  });
  const scopes: Scope[] = [];
  if (values.room !== undefined) scopes.push({ kind: 'rooms', rooms: values.room.map(room) });
  if (values.files !== undefined) {
    scopes.push({ kind: 'paths', paths: values.files.flatMap((list) => list.split(',')) });
  }
  if (values['changed-since'] !== undefined) {
    scopes.push({ kind: 'since', revision: values['changed-since'] });
  }
  if (values.recent) scopes.push({ kind: 'recent' });
  if (scopes.length > 1) {
    throw new Error('--room, --files, --changed-since and --recent exclude each other');
  }
  return {
    scope: scopes[0] ?? { kind: 'rooms', rooms: ROOMS },
    sample: values.sample === undefined ? undefined : wholeNumber('sample', values.sample, 1, 100_000),
    seed: values.seed,
    minutes: values.minutes === undefined ? undefined : wholeNumber('minutes', values.minutes, 1, 1440),
    threshold: wholeNumber('threshold', values.threshold, 0, 100),
    concurrency: wholeNumber('concurrency', values.concurrency, 1, 64),
    suites: values.suites?.split(','),
  };
}

function room(name: string): Room {
  const known = ROOMS.find((candidate) => candidate === name);
  if (known === undefined) {
    throw new Error(`--room is ${JSON.stringify(name)}; it must be one of ${ROOMS.join(', ')}`);
  }
  return known;
}

function wholeNumber(flag: string, text: string, least: number, most: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most)) {
    throw new Error(
      `--${flag} is ${JSON.stringify(text)}; it must be a whole number from ${least} to ${most}`,
    );
  }
  return value;
}
