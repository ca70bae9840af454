/** Resolves entries of profiles for the sidecar: judged by the configuration file's rules, in the profiles' own terms. */

import type { Config } from '../../config/config.ts';
import { readShape } from '../../config/file.ts';
import { fileSchema } from '../../config/file-schema.ts';
import { resolveConfig } from '../../config/load.ts';
import type { Problem } from '../../platform/problems.ts';
import { type File, type Owned, type ProfileEntries, toFile } from './profile-entries.ts';

interface ResolvedEntries {
  readonly file: File;
  /** Undefined if there is a problem. */
  readonly config: Config | undefined;
  /** The part that could be understood all the same, to judge the rest by; without entries that are wrong as a whole. */
  readonly understood: Config | undefined;
}

/** A problem and the entry that it concerns; undefined if it concerns all of them. */
export interface OwnedProblem extends Problem {
  readonly of: Owned<unknown> | undefined;
}

export function resolveEntries(entries: ProfileEntries, problems: OwnedProblem[]): ResolvedEntries {
  const file = toFile(entries);
  const found: Problem[] = [];
  const read = readShape(fileSchema, structuredClone(file), found);
  const config = read && resolveConfig({ config: read, understood: true }, {}, found);
  const known = new Set<string>();
  for (const problem of found) {
    // A setting that was not understood would be reported again as missing.
    if (known.has(problem.key)) continue;
    known.add(problem.key);
    problems.push(inTermsOfProfile(problem, entries));
  }
  return { file, config: found.length === 0 ? config : undefined, understood: config };
}

function inTermsOfProfile(problem: Problem, { credentials, routes, hosts }: ProfileEntries): OwnedProblem {
  const lists: Readonly<Record<string, readonly Owned<unknown>[]>> = {
    credentials,
    routes,
    'forwardProxy.allow': hosts,
  };
  const [, list = '', index, rest] =
    /^(credentials|routes|forwardProxy\.allow)\[(\d+)\](.*)$/.exec(problem.key) ?? [];
  const of = lists[list]?.[Number(index)];
  if (of === undefined) {
    return { ...problem, key: problem.key.startsWith('forwardProxy') ? 'spec.hosts' : 'spec', of };
  }
  const { instead } = problem;
  const entry = `${list}[${index}]`;
  const inProfile = instead?.map((name) =>
    name.startsWith(`${entry}.`) ? `${of.key}${name.slice(entry.length)}` : name,
  );
  return {
    ...problem,
    key: `${of.key}${rest}`,
    ...(inProfile === undefined ? {} : { instead: inProfile }),
    of,
  };
}
