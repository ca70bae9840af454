import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { watch } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { evenPart } from './even-part.ts';
import { type Mutant, mutantOf, type ReportedMutant } from './mutant.ts';

const HERE = import.meta.dirname;
const ROOT = join(HERE, '..');
const CACHE = '.cache';
const MODULES = join(HERE, 'node_modules/@stryker-mutator');

/** What a mutant's tests may take beyond one and a half times what they take without it. */
const GRACE_MS = 15_000;

/** How long the tests may take before anything is changed: `--minutes` begin after them. */
const UNCHANGED_MS = 10 * 60_000;

/** How long a run that was told to end may take for it. */
const ENDING_MS = 5000;

export interface Measured {
  readonly mutants: readonly Mutant[];
  /** `time`: some, or none at all, were measured when it ran out. */
  readonly ended: 'complete' | 'time';
}

export interface Run {
  readonly files: readonly string[];
  readonly sample: number | undefined;
  readonly seed: string;
  readonly minutes: number | undefined;
  readonly concurrency: number;
  readonly suites: readonly string[];
}

/** @throws {Error} when the tests fail before anything is changed, or the tool itself does. */
export async function mutate(run: Run): Promise<Measured> {
  await mkdir(join(ROOT, CACHE), { recursive: true });
  // One of its own: a run that lost its copy of the tests to another would find none, and call all mutants survivors.
  const directory = await mkdtemp(join(ROOT, CACHE, 'mutation-'));
  const results = join(directory, 'results.jsonl');
  await writeFile(results, '');
  const configuration = join(directory, 'stryker.json');
  await writeFile(configuration, JSON.stringify(strykerOptions(run, relative(ROOT, directory))));

  const child = spawn(process.execPath, [join(MODULES, 'core/bin/stryker.js'), 'run', configuration], {
    cwd: ROOT,
    // A group of its own: when time is over it ends with all that it started.
    detached: true,
    stdio: 'inherit',
    env: {
      ...process.env,
      MUTATION_RESULTS: results,
      MUTATION_SEED: run.seed,
      MUTATION_SUITES: run.suites.join(','),
      ...(run.sample === undefined ? {} : { MUTATION_SAMPLE: String(run.sample) }),
    },
  });
  const end = (signal: NodeJS.Signals) => signalGroup(child.pid, signal);
  const forward = () => end('SIGTERM');
  process.once('SIGINT', forward).once('SIGTERM', forward);
  let timeIsOver = false;
  const endAfter = (ms: number) =>
    setTimeout(() => {
      timeIsOver = true;
      end('SIGTERM');
      timer = setTimeout(end, ENDING_MS, 'SIGKILL');
    }, ms);
  let timer = run.minutes === undefined ? undefined : endAfter(UNCHANGED_MS);
  // Its first line says that the tests have passed without a change.
  const watcher = watch(results, () => {
    watcher.close();
    clearTimeout(timer);
    if (run.minutes !== undefined) timer = endAfter(run.minutes * 60_000);
  });
  const [status] = (await once(child, 'close')) as [number | null];
  watcher.close();
  clearTimeout(timer);
  end('SIGKILL');
  process.off('SIGINT', forward).off('SIGTERM', forward);

  const lines = (await readFile(results, 'utf8')).split('\n').filter((line) => line !== '');
  await rm(directory, { recursive: true, force: true });
  const ended = lines.at(-1) === '"complete"' ? 'complete' : 'time';
  if (ended === 'complete' ? status !== 0 : !timeIsOver) {
    throw new Error(`the mutation tester ended with status ${status} before it had measured`);
  }
  const all = lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as ReportedMutant);
  const reported = ended === 'complete' && run.sample === undefined ? all : evenPart(all, run.seed);
  if (ended === 'time' && lines.length > 0 && reported.length === 0) {
    throw new Error(`the tests passed unchanged, but no mutant was measured in ${run.minutes} minutes`);
  }
  return { mutants: reported.map((mutant) => mutantOf(mutant, ROOT)), ended };
}

function strykerOptions({ files, concurrency, minutes }: Run, temporary: string): object {
  return {
    mutate: files,
    concurrency,
    // A change to what a module does as it loads takes the whole of the tests, minutes by itself: within minutes none is tried.
    ignoreStatic: minutes !== undefined,
    testRunner: 'vitest',
    vitest: { configFile: join(HERE, 'suites.config.ts'), related: true },
    coverageAnalysis: 'perTest',
    checkers: ['seeded-order'],
    ignorers: ['words-for-people'],
    reporters: ['results-as-they-come'],
    plugins: [
      join(MODULES, 'vitest-runner/dist/src/index.js'),
      join(HERE, 'plugins/seeded-order.ts'),
      join(HERE, 'plugins/results-as-they-come.ts'),
      join(HERE, 'plugins/words-for-people.ts'),
    ],
    // The driver's own bound comes before.
    dryRunTimeoutMinutes: 60,
    timeoutMS: GRACE_MS,
    timeoutFactor: 1.5,
    tempDirName: temporary,
    cleanTempDir: 'always',
    // What is mutated needs sources and tests, and the schema and documents that some of them read.
    ignorePatterns: ['/bench', '/mutation', '/dist', '/.cache', '/test-results', '/test/e2e', '/test/image'],
    // The compiler has no interface for JavaScript, so its configuration cannot be rewritten and need not be.
    tsconfigFile: 'none',
    disableTypeChecks: false,
    allowConsoleColors: false,
    logLevel: 'info',
  };
}

/** ESRCH: all of them have ended. */
function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
