/**
 * Runs `npm test` again and again, on the machine as it is and with one core kept busy, and prints a table.
 *
 *     npm run test:repeat -- [--runs N] [--busy-runs N] [FILES …]
 *
 * 20 and 10 runs unless told otherwise. The status is 1 if a test failed, or if a run of the first kind took longer
 * than two minutes.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { print, printTable } from './simulation/table.ts';

const MAX_SECONDS = 120;

interface Outcome {
  readonly seconds: number;
  readonly passed: number;
  /** Their names; what else made the run fail. */
  readonly failed: readonly string[];
}

/** The part that is read of what Vitest reports as JSON. */
interface Report {
  readonly numPassedTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

const { values, positionals } = parseArgs({
  options: {
    runs: { type: 'string', default: '20' },
    'busy-runs': { type: 'string', default: '10' },
  },
  allowPositionals: true,
});

try {
  const plan = [
    ...Array<'quiet'>(count('runs', values.runs)).fill('quiet'),
    ...Array<'busy'>(count('busy-runs', values['busy-runs'])).fill('busy'),
  ];
  const rows: string[][] = [];
  for (const [index, kind] of plan.entries()) {
    const { seconds, passed, failed } = await (kind === 'busy' ? besideBusyProcess(runTests) : runTests());
    const late = kind === 'quiet' && seconds > MAX_SECONDS ? [`took longer than ${MAX_SECONDS} s`] : [];
    const wrong = [...failed, ...late];
    rows.push([
      String(index + 1),
      kind,
      String(seconds),
      String(passed),
      String(failed.length),
      wrong.join('; '),
    ]);
    process.stderr.write(`${rows.at(-1)?.join(' · ')}\n`);
    if (wrong.length > 0) process.exitCode = 1;
  }
  print();
  printTable(['run', 'machine', 'seconds', 'passed', 'failed', 'what'], rows);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

async function runTests(): Promise<Outcome> {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-repeat-'));
  const file = join(directory, 'report.json');
  try {
    const startedAt = performance.now();
    const args = ['test', '--', '--reporter=json', `--outputFile=${file}`, ...positionals];
    const npm = spawn('npm', args, { stdio: 'ignore' });
    const [status] = await once(npm, 'exit');
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    const report = await readFile(file, 'utf8').then(
      (text) => JSON.parse(text) as Report,
      () => undefined,
    );
    const failed = report === undefined ? [] : failuresOf(report);
    // An error outside of every test, for example.
    if (status !== 0 && failed.length === 0) failed.push(`npm test ended with ${status}`);
    return { seconds, passed: report?.numPassedTests ?? 0, failed };
  } finally {
    await rm(directory, { recursive: true });
  }
}

function failuresOf({ testResults }: Report): string[] {
  return testResults.flatMap(({ name, status, assertionResults }) => {
    const tests = assertionResults.filter((test) => test.status === 'failed').map(({ fullName }) => fullName);
    // A file may fail before its first test.
    return tests.length > 0 || status !== 'failed' ? tests : [name];
  });
}

async function besideBusyProcess(run: () => Promise<Outcome>): Promise<Outcome> {
  const busy = spawn(process.execPath, ['--eval', 'for (;;);'], { stdio: 'ignore' });
  try {
    return await run();
  } finally {
    busy.kill('SIGKILL');
  }
}

function count(flag: string, text: string): number {
  if (!/^\d{1,4}$/.test(text))
    throw new Error(`--${flag} is ${JSON.stringify(text)}; it must be a number of runs`);
  return Number(text);
}
