/** Nothing that can be run is forgotten: by `npm run test:all`, by CI, or by who reads CONTRIBUTING. */

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import { chosenSuites } from '../scripts/suites/choice.ts';
import { SUITES } from '../scripts/suites/suites.ts';
import config from '../vitest.config.ts';
import cluster from './cluster/vitest.config.ts';

const ROOT = join(import.meta.dirname, '..');
const scripts: Readonly<Record<string, string>> = manifest.scripts;
const ciRun = readFileSync(join(ROOT, '.ci/run'), 'utf8');

it.each(SUITES.map((suite) => [suite.name, suite] as const))('%s can be run', (_, { script }) => {
  expect(Object.keys(scripts)).toContain(script);
});

it('every suite with a configuration of its own is one of them', () => {
  const configured = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('vitest.config.ts'))
    .map((file) => `test/${file}`);
  expect(configured.length).toBeGreaterThan(4);
  for (const config of configured) {
    const named = SUITES.filter(({ script }) => scripts[script]?.includes(`--config ${config}`));
    expect([config, named.length]).toEqual([config, 1]);
  }
});

it('every script that tests, measures or simulates is one of them', () => {
  const shows = Object.keys(scripts).filter((name) =>
    /^(test|bench|simulate|soak|chaos|fuzz|mutation)\b/.test(name),
  );
  const run = new Set(SUITES.map(({ script }) => script));
  expect(shows.filter((name) => !run.has(name))).toEqual(['test:all']);
});

it('the whole of what they can run has what the fleet of brokers is promised', () => {
  expect(SUITES).toContainEqual(expect.objectContaining({ script: 'simulate', args: ['--broker'] }));
  const [cluster] = SUITES.filter(({ script }) => script === 'test:cluster');
  expect(cluster?.env).toEqual({ PODS: '100' });
});

it('none of them is a part of `npm test`, which installs nothing', () => {
  const { exclude = [] } = config.test ?? {};
  const rooms = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('vitest.config.ts'))
    .map((file) => `test/${dirname(file)}/**`);
  expect(rooms.filter((room) => !exclude.includes(room))).toEqual([]);
});

it.each(SUITES.map((suite) => [suite.name, suite.inCi, suite] as const))(
  'CI runs of %s: %s',
  (_name, inCi, { script, args = [] }) => {
    const line =
      ciRun.split('\n').find((each) => new RegExp(`npm (run )?${script}(?![:\\w])`).test(each)) ?? '';
    expect(line === '').toBe(inCi === 'nothing');
    // A part has arguments that say which; the whole of something has none.
    expect(/ -- /.test(line)).toBe(inCi === 'part');
    if (inCi === 'whole') expect(args).toEqual([]);
  },
);

it('what was tried in a cluster is printed, a line for each scenario', () => {
  expect([cluster.test?.reporters].flat()).toContain('verbose');
});

it('who contributes reads of each how it is run', () => {
  const contributing = readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8');
  expect(contributing).toContain('`npm run test:all`');
  const unnamed = SUITES.filter(
    ({ script }) => !new RegExp(`(npm run |npm |\`)${script}\\b`).test(contributing),
  );
  expect(unnamed).toEqual([]);
});

it('who contributes reads which of them CI runs in full', () => {
  const contributing = readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8').replace(/\s+/g, ' ');
  const [, sentence = ''] = /CI runs (.*?) in full\./.exec(contributing) ?? [];
  const named = sentence.replace('`npm test` (on Node 24, too)', 'unit').split(/, | and /);
  const whole = SUITES.filter(({ inCi }) => inCi === 'whole').map(({ name }) => name);
  expect(named.sort()).toEqual(whole.sort());
});

describe('a choice among them', () => {
  const names = (...args: string[]) => chosenSuites(args, SUITES).map(({ name }) => name);

  it('is all, unless told otherwise', () => {
    expect(names()).toEqual(SUITES.map(({ name }) => name));
    expect(names('--only', 'soak,unit')).toEqual(['unit', 'soak']);
    expect(names('--only', 'soak', '--only', 'chaos')).toEqual(['chaos', 'soak']);
    expect(names('--without', 'mutation')).not.toContain('mutation');
  });

  it('has known names', () => {
    expect(() => names('--only', 'units')).toThrow(/^--only is "units"; it must be one of check, unit, /);
    expect(() => names('--except', 'unit')).toThrow(/--except/);
  });
});
