import { execFileSync, spawnSync } from 'node:child_process';
import { globSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { inSeededOrder } from './even-part.ts';
import type { Scope } from './options.ts';
import { ROOMS, roomOf } from './rooms.ts';

/** Files that hold types or constants alone are measured like the rest: they have few mutants, or none. */
const SOURCES = '**/*.ts';

/** Of more files than this CI measures so many, drawn by the seed: each brings its tests, and all of them take too long. */
const MAX_RECENT_FILES = 12;

export interface Files {
  readonly files: readonly string[];
  /** How they were found, for the report. */
  readonly because: string;
  /** False when these are some of those that are meant. */
  readonly all: boolean;
}

/** Where the project is, and what CI says of the change. */
export interface Surroundings {
  readonly root: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Draws files where there are too many. */
  readonly seed: string;
}

/** @throws {Error} when the scope names a path or a commit that doesn't exist. */
export function filesOf(
  scope: Scope,
  { root, env, seed }: Surroundings = { root: process.cwd(), env: process.env, seed: '' },
): Files {
  switch (scope.kind) {
    case 'rooms':
      return {
        files: scope.rooms.flatMap((room) => under(root, `src/${room}`)),
        because: scope.rooms.join(', '),
        all: true,
      };
    case 'paths':
      return { files: scope.paths.flatMap((path) => under(root, path)), because: 'as named', all: true };
    case 'since':
      return {
        files: changedSince(root, scope.revision),
        because: `changed since ${scope.revision}`,
        all: true,
      };
    case 'recent':
      return drawn(recent(root, env['CI_BASE']), seed);
  }
}

function under(root: string, path: string): readonly string[] {
  if (!statSync(join(root, path)).isDirectory()) return [path];
  return globSync(`${path}/${SOURCES}`, { cwd: root }).sort();
}

/** What changed since the base that CI names, or else in the last day of commits; when nothing did, a sample of all. */
function recent(root: string, named: string | undefined): Files {
  const base = [named, dayBefore(root)].find((candidate) => candidate && isCommit(root, candidate));
  const files = base === undefined ? [] : changedSince(root, base);
  if (files.length > 0) return { files, because: `changed since ${base?.slice(0, 12)}`, all: true };
  return {
    files: ROOMS.flatMap((room) => under(root, `src/${room}`)),
    because: 'nothing changed: of all',
    all: true,
  };
}

function drawn(found: Files, seed: string): Files {
  const { files, because } = found;
  if (files.length <= MAX_RECENT_FILES) return found;
  const order = inSeededOrder(
    files.map((id) => ({ id })),
    seed,
  );
  return {
    files: order.slice(0, MAX_RECENT_FILES).map(({ id }) => id),
    because: `drawn from ${files.length}, ${because}`,
    all: false,
  };
}

/** The newest commit that is a day older than the checked-out one; the empty string in a shallower clone. */
function dayBefore(root: string): string {
  const committedAt = Number(git(root, 'log', '-1', '--format=%ct'));
  return git(root, 'rev-list', '-1', `--before=${committedAt - 86_400}`, 'HEAD').trim();
}

/** False for one that a shallow clone has not, and for the zeros that stand for no commit. */
function isCommit(root: string, revision: string): boolean {
  return spawnSync('git', ['cat-file', '-e', `${revision}^{commit}`], { cwd: root }).status === 0;
}

/**
 * Files of the rooms that are new or changed, committed or not, since the history parted from the revision: what others
 * did on its side meanwhile is not meant.
 */
function changedSince(root: string, revision: string): readonly string[] {
  if (!isCommit(root, revision)) throw new Error(`${revision} is no commit of this clone`);
  const parted = spawnSync('git', ['merge-base', revision, 'HEAD'], { cwd: root, encoding: 'utf8' });
  const since = parted.status === 0 ? parted.stdout.trim() : revision;
  const changed = git(root, 'diff', '--name-only', '--diff-filter=d', since, '--', 'src');
  const untracked = git(root, 'ls-files', '--others', '--exclude-standard', '--', 'src');
  return `${changed}${untracked}`
    .split('\n')
    .filter((file) => roomOf(file) !== undefined)
    .sort();
}

function git(root: string, ...args: string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' });
}
