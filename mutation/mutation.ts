/**
 * Changes the sources in small ways and counts how many of the changes the tests notice.
 *
 *     npm run mutation -- [--room token|proxy|issuer|injector]… [--files PATH,…] [--changed-since REV] [--recent]
 *                         [--sample N] [--seed S] [--minutes M] [--threshold PERCENT] [--concurrency N]
 *                         [--suites DIRECTORY,…]
 *
 * `--recent` is what CI runs: files changed since $CI_BASE, else within a day of commits, else all; of many
 * files a dozen, drawn by the seed.
 * `--suites` runs the tests of these directories alone: a quick look, in which survivors need not be any.
 * More than twenty files are measured room by room, and the table comes when all are. `--sample` and `--minutes` measure
 * an even part, drawn by the seed: so many mutants of twenty files of each room, or for so long. The minutes begin when the tests have passed
 * unchanged, for which they have ten; what a module does as it loads is left out then. Exits 1 when a smaller share than
 * the threshold is noticed (of a part: so much smaller that chance does not explain it), or an entry of accepted.yaml is
 * stale. The last line says what was measured, or that nothing was.
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAccepted, staleEntries } from './accepted.ts';
import type { Mutant } from './mutant.ts';
import { readOptions } from './options.ts';
import { partsOf } from './parts.ts';
import { reportLines } from './report.ts';
import { suitesFor } from './rooms.ts';
import { filesOf } from './scope.ts';
import { mutate } from './stryker.ts';
import { verdictOn } from './verdict.ts';

process.chdir(join(import.meta.dirname, '..'));
const options = readOptions(process.argv.slice(2));
const {
  files,
  because,
  all: allFiles,
} = filesOf(options.scope, {
  root: process.cwd(),
  env: process.env,
  seed: options.seed,
});
const accepted = parseAccepted(readFileSync(join(import.meta.dirname, 'accepted.yaml'), 'utf8'));

const { parts, all: allParts } = partsOf(files, {
  seed: options.seed,
  evenPart: options.minutes !== undefined || options.sample !== undefined,
});

say(`${parts.flat().length} of ${files.length} files (${because}), seed ${options.seed}`);
const mutants: Mutant[] = [];
let complete = true;
for (const part of parts) {
  const measured = await mutate({ ...options, files: part, suites: options.suites ?? suitesFor(part) });
  mutants.push(...measured.mutants);
  complete &&= measured.ended === 'complete';
}
for (const line of reportLines(mutants, accepted)) say(line);

const stale = staleEntries(accepted, mutants);
for (const { file, original, replacement } of stale) {
  say(`stale in accepted.yaml: ${file}: ${original} → ${replacement}`);
}
const all = allFiles && allParts && complete && options.sample === undefined;
const { lines, reached } = verdictOn(mutants, accepted, { all, threshold: options.threshold });
for (const line of lines) say(line);
process.exitCode = reached && stale.length === 0 ? 0 : 1;

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
