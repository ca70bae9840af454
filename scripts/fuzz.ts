/**
 * Runs the differential fuzzer of the HTTP/1.1 codec against llhttp for a while.
 *
 *     npm run fuzz -- [--seconds N] [--seed S] [--case C]
 *
 * Without a seed it takes one from the clock, and prints it. `--case` repeats one case of a seed.
 */

import { parseArgs } from 'node:util';
import { newTally, runCase } from '../test/proxy/http1/fuzz/differential.ts';

const { values } = parseArgs({
  options: { seconds: { type: 'string' }, seed: { type: 'string' }, case: { type: 'string' } },
});
const seconds = wholeNumber('seconds', values.seconds ?? '60');
const seed = wholeNumber('seed', values.seed ?? String(Date.now() % 2 ** 31));
const tally = newTally();

process.stdout.write(`seed ${seed}\n`);
try {
  if (values.case === undefined) runFor(seconds * 1000);
  else runCase(seed, wholeNumber('case', values.case), tally);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

const { cases, messagesAlike, bothRefused, stricter } = tally;
process.stdout.write(
  `${cases} cases: ${messagesAlike} messages read alike, ${bothRefused} cases refused by both\n`,
);
process.stdout.write('refused by the codec alone:\n');
for (const [reason, count] of [...stricter].sort((a, b) => b[1] - a[1])) {
  process.stdout.write(`${String(count).padStart(9)}  ${reason}\n`);
}

function runFor(durationMs: number): void {
  const end = performance.now() + durationMs;
  for (let caseNumber = 0; performance.now() < end; caseNumber++) runCase(seed, caseNumber, tally);
}

function wholeNumber(name: string, value: string): number {
  if (!/^[0-9]+$/.test(value))
    throw new Error(`--${name} is ${JSON.stringify(value)}; it must be a whole number`);
  return Number(value);
}
