import { spawnSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { TokenFileConfig } from '../../../src/config/config.ts';
import { Registry } from '../../../src/platform/prometheus.ts';
import { createTokenFileMetrics, openTokenFile } from '../../../src/token/output/token-file.ts';
import { captureLog } from '../../support/log-capture.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { heldTokens } from './held-tokens.ts';

const IN_MEMORY = '/dev/shm';

async function directoryIn(parent: string): Promise<string> {
  const directory = await mkdtemp(join(parent, 'token-file-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

async function open(settings: Partial<TokenFileConfig> = {}, parent = tmpdir()) {
  const directory = await directoryIn(parent);
  const path = settings.path ?? join(directory, 'kafka');
  const clock = new ManualClock();
  const tokens = heldTokens(clock);
  const { log, lines } = captureLog();
  const config = { path, mode: 0o640, ...settings };
  const registry = new Registry();
  const metrics = createTokenFileMetrics(registry);
  const file = await openTokenFile({ config, source: tokens.source, clock, metrics, log });
  onTestFinished(() => file.close());
  const isCurrent = async () =>
    (await registry.metrics()).match(/^token_sidecar_token_file_current\{credential="kafka"\} (.*)$/m)?.[1];
  return { ...tokens, clock, isCurrent, directory, path, file, lines, content: () => readFile(path, 'utf8') };
}

const gone = (path: string) => expect(stat(path)).rejects.toThrow('ENOENT');

it('the token file has each token in turn with its mode and group, and is removed at expiry', async () => {
  const opened = await open({ mode: 0o604, group: process.getgid?.() as number });
  await gone(opened.path);
  opened.give('one', 60_000);
  await expect.poll(opened.content).toBe('one');
  expect((await stat(opened.path)).mode & 0o7777).toBe(0o604);
  const { ino } = await stat(opened.path);
  opened.give('two', 60_000);
  await expect.poll(opened.content).toBe('two');
  // Another file, that came whole.
  expect((await stat(opened.path)).ino).not.toBe(ino);
  expect(await readdir(opened.directory)).toEqual(['kafka']);
  await opened.clock.advance(59_999);
  expect(await opened.content()).toBe('two');
  await opened.clock.advance(1);
  await expect.poll(() => readdir(opened.directory)).toEqual([]);
});

it('the token file is checked while a token lives long, and leaves no timer when closed', async () => {
  const opened = await open();
  opened.give('one', 3_600_000);
  await expect.poll(opened.content).toBe('one');
  await opened.clock.advance(60_000);
  expect(opened.clock.pendingTimers).toBe(1);
  await opened.file.close();
  await gone(opened.path);
  expect(opened.followers()).toBe(0);
  await opened.clock.advance(60_000);
  expect(opened.clock.pendingTimers).toBe(0);
});

it('the token file replaces one of an earlier start and follows no symbolic link', async () => {
  const directory = await directoryIn(tmpdir());
  const path = join(directory, 'kafka');
  const elsewhere = join(directory, 'elsewhere');
  await writeFile(elsewhere, 'precious');
  await symlink(elsewhere, path);
  await symlink(elsewhere, join(directory, '.kafka.incoming'));
  const opened = await open({ path });
  await gone(path);
  opened.give('one', 60_000);
  await expect.poll(opened.content).toBe('one');
  expect(await readFile(elsewhere, 'utf8')).toBe('precious');
});

it('a failed write of the token file is repeated, and the log has no token', async () => {
  const opened = await open();
  await rm(opened.directory, { recursive: true });
  opened.give('one', 60_000);
  await expect.poll(() => opened.lines.join('')).toContain('ENOENT');
  await mkdir(opened.directory);
  await opened.clock.advance(5000);
  await expect.poll(opened.content).toBe('one');
  expect(opened.lines.join('')).not.toMatch(/\bone\b/);
});

it('the token file has no expired token even if the next one could not be written', async () => {
  const opened = await open();
  opened.give('one', 60_000);
  await expect.poll(opened.content).toBe('one');
  await opened.clock.advance(30_000);
  const inTheWay = join(opened.directory, '.kafka.incoming');
  await mkdir(inTheWay);
  opened.give('two', 600_000);
  await expect.poll(opened.isCurrent).toBe('0');
  await opened.clock.advance(29_999);
  expect(await opened.content()).toBe('one');
  expect(await opened.isCurrent()).toBe('0');
  const sinceMs = opened.clock.now().wallMs - 29_999;
  expect(opened.file.trouble()).toMatchObject({ credential: 'kafka', path: opened.path, sinceMs });
  await opened.clock.advance(1);
  await gone(opened.path);
  expect(await opened.isCurrent()).toBe('0');
  await rm(inTheWay, { recursive: true });
  await opened.clock.advance(5000);
  expect(await opened.content()).toBe('two');
  expect(await opened.isCurrent()).toBe('1');
  expect(opened.file.trouble()).toBeUndefined();
});

it('the token file has no token that expired while the next one could not be written', async () => {
  const opened = await open();
  opened.give('one', 60_000);
  await expect.poll(opened.content).toBe('one');
  await mkdir(join(opened.directory, '.kafka.incoming'));
  await opened.clock.advance(59_999);
  opened.give('two', 60_000);
  // The attempt is under way.
  opened.clock.stepWall(1);
  await opened.clock.advance(1);
  await gone(opened.path);
});

it('the removal of an expired token file is retried every 5 s', async () => {
  const opened = await open();
  opened.give('one', 60_000);
  await expect.poll(opened.content).toBe('one');
  await rm(opened.path);
  await mkdir(opened.path);
  await opened.clock.advance(90_000);
  expect(await opened.isCurrent()).toBe('0');
  expect(opened.lines.filter((line) => line.includes('could not be brought up to date'))).toHaveLength(1);
  await rm(opened.path, { recursive: true });
  await opened.clock.advance(5000);
  expect(await opened.isCurrent()).toBe('1');
  expect(opened.clock.pendingTimers).toBe(1);
});

/** A volume of memory that can hold one page, in a mount namespace of its own. */
const SMALL = 'mount -t tmpfs -o size=4k none "$2" && exec "$0" "$1" "$2"';
const namespaces = spawnSync('unshare', ['-Urm', 'true']).status === 0;

it.skipIf(!namespaces)(
  'on a full volume the token file has each token until its expiry and then the next',
  async () => {
    const directory = await directoryIn(tmpdir());
    const program = join(import.meta.dirname, 'on-a-full-volume.ts');
    const { stdout, stderr } = spawnSync(
      'unshare',
      ['-Urm', 'sh', '-c', SMALL, process.execPath, program, directory],
      { encoding: 'utf8' },
    );
    expect({ stdout, stderr }).toEqual({ stdout: 'one, one, two', stderr: '' });
  },
);

it('a token that could not replace the file leaves no temporary file', async () => {
  const opened = await open();
  await mkdir(opened.path);
  opened.give('one', 60_000);
  await expect.poll(() => opened.lines.join('')).toContain('could not be brought up to date');
  expect(await readdir(opened.directory)).toEqual(['kafka']);
  // What was left there by other means goes with the token, though the path itself cannot.
  await writeFile(join(opened.directory, '.kafka.incoming'), 'one');
  await opened.file.close();
  expect(await readdir(opened.directory)).toEqual(['kafka']);
});

it.each(['/nowhere/at/all/token', '/proc/token'])(
  'the token file cannot be %s, which is reported at the start',
  async (path) => {
    const error = await open({ path }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      message: expect.stringMatching(
        new RegExp(`^credential kafka: output\\.file ${path}: expected a file in a .*\\([A-Z]+\\)$`),
      ),
      // For the log: the system's own words.
      cause: { code: expect.stringMatching(/^E[A-Z]+$/) },
    });
  },
);

it('the token file cannot be a directory', async () => {
  const path = await directoryIn(tmpdir());
  await chmod(path, 0o755);
  await expect(open({ path })).rejects.toThrow(/output\.file .*expected a file/);
});

it('a token file on a volume that is not in memory is warned of', async () => {
  const inMemory = await open({}, IN_MEMORY);
  expect(inMemory.lines).toEqual([]);
  const onDisk = await open({}, process.cwd());
  expect(onDisk.lines.join('')).toContain('mount a volume of memory');
});

it('after a reload the token file has the token of another credential without being missing in between', async () => {
  const opened = await open();
  opened.give('of the first', 60_000);
  await expect.poll(opened.content).toBe('of the first');
  const next = heldTokens(opened.clock);
  next.give('of the second', 60_000);

  opened.file.follow(next.source);
  for (;;) {
    const content = await opened.content();
    if (content === 'of the second') break;
    expect(content).toBe('of the first');
  }

  expect([opened.followers(), next.followers()]).toEqual([0, 1]);
  opened.give('of the first again', 60_000);
  next.give('of the second again', 60_000);
  await expect.poll(opened.content).toBe('of the second again');
});
