/**
 * Random walks of app, upstream, token source and clock around the data path; see test/model/README.md.
 *
 *     npm run chaos -- [--seconds N] [--driver real|simulated] [--seed S] [--walks N] [--with-fault NAME]
 *
 * So many seconds for each driver, both unless one is named. Without a seed it takes one from the clock, and prints it.
 */

import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { loadProduct } from '../test/model/data-path.ts';
import { type ExploreOptions, explore } from '../test/model/explore.ts';
import { MENDED_FAULTS, type MendedFault, sourceWith } from '../test/model/mended-faults.ts';
import { runWalk } from '../test/model/run-walk.ts';
import { createWorlds, DRIVERS, type Driver } from '../test/model/worlds.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    driver: { type: 'string' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    walks: { type: 'string' },
    'with-fault': { type: 'string' },
  },
});

try {
  const seed = wholeNumber('seed', values.seed);
  const durationMs = wholeNumber('seconds', values.seconds) * 1000;
  const bounds = values.walks === undefined ? {} : { mostWalks: wholeNumber('walks', values.walks) };
  const drivers = values.driver === undefined ? DRIVERS : [oneOf('driver', values.driver, DRIVERS)];
  const fault = values['with-fault'];
  const faulty = fault === undefined ? undefined : await sourceWith(oneOf('with-fault', fault, faults()));
  const product = await loadProduct(faulty?.directory ?? join(import.meta.dirname, '../src'));
  for (const driver of drivers) await walk(driver, { product, seed, durationMs, ...bounds });
  await faulty?.remove();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}

async function walk(driver: Driver, options: Omit<ExploreOptions, 'worlds'>): Promise<void> {
  print(`${driver}: seed ${options.seed}`);
  const worlds = await createWorlds(driver);
  const startedAt = performance.now();
  const { walks, steps, finding, foundAfterMs } = await explore({ ...options, worlds });
  const took = ((foundAfterMs ?? performance.now() - startedAt) / 1000).toFixed(1);
  print(
    `${driver}: ${walks} walks of ${steps} steps in ${took} s: ${finding === undefined ? 'nothing' : 'FAULT'} found`,
  );
  if (finding !== undefined) {
    const { seed, error, walk: short } = finding;
    print(`${error.message}\n`);
    print(`again: npm run chaos -- --driver ${driver} --seed ${seed} --walks 1`);
    print(
      `shortened to ${short.steps.length} steps (${short.app} to ${short.upstream}, ${short.transport}, renewal ${short.renewal}):`,
    );
    await runWalk(short, await worlds.open(short), options.product, print);
    process.exitCode = 1;
  }
  await worlds.close();
}

// Sockets of loopback that were reset while they were being made may not be closed by Node.
process.stdout.write('', () => process.exit());

function faults(): MendedFault[] {
  return Object.keys(MENDED_FAULTS) as MendedFault[];
}

function oneOf<T extends string>(flag: string, value: string, values: readonly T[]): T {
  const found = values.find((candidate) => candidate === value);
  if (found === undefined)
    throw new Error(`--${flag} is ${JSON.stringify(value)}; it must be ${values.join(' or ')}`);
  return found;
}

function wholeNumber(flag: string, value: string): number {
  if (!/^\d+$/.test(value)) {
    throw new Error(`--${flag} is ${JSON.stringify(value)}; it must be a whole number`);
  }
  return Number(value);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
