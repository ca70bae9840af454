/**
 * Runs a differential fuzzer for a while: that of the HTTP/1.1 codec against llhttp; that of the HTTP/2 codec against
 * nghttp2, as Node has it, PyPI's h2 and Go's framer; or that of field blocks against the HPACK of PyPI and of Go. What it
 * compares with it installs into .cache.
 *
 *     npm run fuzz -- [--protocol h1|h2|hpack] [--seconds N] [--seed S] [--case C]
 *
 * Without a seed it takes one from the clock, and prints it. `--case` repeats one case of a seed.
 */

import { parseArgs } from 'node:util';
import * as http1 from '../test/proxy/http1/fuzz/differential.ts';
import * as http2 from '../test/proxy/http2/fuzz/differential.ts';
import { GoFramer } from '../test/proxy/http2/fuzz/go-framer.ts';
import { installLibraries } from '../test/proxy/http2/fuzz/install.ts';
import { PythonH2 } from '../test/proxy/http2/fuzz/python-h2.ts';
import * as hpack from '../test/proxy/http2/hpack/fuzz/differential.ts';
import { startLibraries } from '../test/proxy/http2/hpack/fuzz/libraries.ts';

const { values } = parseArgs({
  options: {
    protocol: { type: 'string', default: 'h1' },
    seconds: { type: 'string' },
    seed: { type: 'string' },
    case: { type: 'string' },
  },
});
const seconds = wholeNumber('seconds', values.seconds ?? '60');
const seed = wholeNumber('seed', values.seed ?? String(Date.now() % 2 ** 31));

process.stdout.write(`seed ${seed}\n`);
if (values.protocol === 'h1') await fuzzHttp1();
else if (values.protocol === 'h2') await fuzzHttp2();
else if (values.protocol === 'hpack') await fuzzHpack();
else throw new Error(`--protocol is ${JSON.stringify(values.protocol)}; it must be h1, h2 or hpack`);

async function fuzzHttp1(): Promise<void> {
  const tally = http1.newTally();
  await run((caseNumber) => http1.runCase(seed, caseNumber, tally));
  const { cases, conversations, messagesAlike, bothRefused, stricter } = tally;
  say(`${cases} cases, ${conversations} of them with thirty messages and more read to their end`);
  say(`${messagesAlike} messages read alike, ${bothRefused} cases refused by both`);
  sayStricter(stricter);
}

async function fuzzHttp2(): Promise<void> {
  await installLibraries();
  const installed = { python: new PythonH2(), go: new GoFramer() };
  const tally = http2.newTally();
  await run((caseNumber) => http2.runCase(seed, caseNumber, tally, installed));
  installed.python.end();
  installed.go.end();
  const { cases, conversations, messagesAlike, bothRefused, stricter } = tally;
  say(`${cases} cases, ${conversations} of them with thirty messages and more read to their end`);
  say(`${messagesAlike} messages read alike, ${bothRefused} cases refused by others too`);
  sayStricter(stricter);
}

async function fuzzHpack(): Promise<void> {
  await installLibraries();
  const libraries = startLibraries();
  const tally = hpack.newTally();
  await run((caseNumber) => hpack.runCase(seed, caseNumber, tally, libraries));
  libraries.go.end();
  libraries.python.end();
  const { sequences, alike, tooLarge, relayed, bothRefused, stricter } = tally;
  const blocks = [...alike.values()].reduce((sum, count) => sum + count, 0);
  say(
    `${sequences} sequences: ${blocks} blocks read alike, ${tooLarge} of them too large, ${relayed} written alike`,
  );
  for (const [encoder, count] of [...alike].sort()) say(`${String(count).padStart(9)}  blocks by ${encoder}`);
  say(`${bothRefused} sequences with a changed block refused by both`);
  sayStricter(stricter);
}

/** Runs one case, or cases for as long as was asked for; a broken rule ends it. */
async function run(runCase: (caseNumber: number) => void | Promise<void>): Promise<void> {
  const end = performance.now() + seconds * 1000;
  let caseNumber = values.case === undefined ? 0 : wholeNumber('case', values.case);
  try {
    do {
      const running = runCase(caseNumber);
      if (running !== undefined) await running;
      caseNumber++;
    } while (values.case === undefined && performance.now() < end);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const again = `--protocol ${values.protocol} --seed ${seed} --case ${caseNumber}`;
    process.stderr.write(`${message}\nto repeat it: ${again}; without --case if it takes the cases before\n`);
    process.exitCode = 1;
  }
}

function sayStricter(stricter: ReadonlyMap<string, number>): void {
  say('refused by the codec alone:');
  for (const [reason, count] of [...stricter].sort((a, b) => b[1] - a[1])) {
    say(`${String(count).padStart(9)}  ${reason}`);
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function wholeNumber(name: string, value: string): number {
  if (!/^[0-9]+$/.test(value))
    throw new Error(`--${name} is ${JSON.stringify(value)}; it must be a whole number`);
  return Number(value);
}
