/**
 * Runs every suite in full, one after the other, also those of which CI runs a part, and goes on where one fails.
 *
 *     npm run test:all -- [--only NAME,…] [--without NAME,…]
 *
 * Ends with a table of what passed and how long it took; the status is 1 if anything failed.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chosenSuites } from './suites/choice.ts';
import { SUITES, type Suite } from './suites/suites.ts';

interface Outcome {
  readonly name: string;
  readonly passed: boolean;
  readonly seconds: number;
}

const outcomes: Outcome[] = [];
try {
  for (const suite of chosenSuites(process.argv.slice(2), SUITES)) outcomes.push(await run(suite));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
for (const { name, passed, seconds } of outcomes) {
  print(`${name.padEnd(20)} ${passed ? 'passed' : 'FAILED'} ${String(seconds).padStart(6)} s`);
}
if (outcomes.some(({ passed }) => !passed)) process.exitCode = 1;

async function run({ name, script, args = [], env = {} }: Suite): Promise<Outcome> {
  print(`── ${name}: npm run ${[script, ...(args.length > 0 ? ['--', ...args] : [])].join(' ')}`);
  const startedAt = performance.now();
  const npm = spawn('npm', ['run', '--silent', script, '--', ...args], {
    stdio: 'inherit',
    env: { ...process.env, ...env },
  });
  const [status] = await once(npm, 'exit');
  return { name, passed: status === 0, seconds: Math.round((performance.now() - startedAt) / 1000) };
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
