import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { filesOf } from '../../mutation/scope.ts';

const DAY_SECONDS = 86_400;

/** A repository with a file in each room, committed two days before the rest. */
async function repository() {
  const root = await mkdtemp(join(tmpdir(), 'token-sidecar-scope-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  let now = 1_900_000_000;
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args], {
      cwd: root,
      encoding: 'utf8',
      env: { ...process.env, GIT_AUTHOR_DATE: `${now} +0000`, GIT_COMMITTER_DATE: `${now} +0000` },
    }).trim();
  const write = async (file: string, text: string) => {
    await mkdir(dirname(join(root, file)), { recursive: true });
    await writeFile(join(root, file), text);
  };
  const commit = async (file: string, text = 'changed') => {
    await write(file, text);
    git('add', '.');
    git('commit', '--quiet', '-m', file);
    return git('rev-parse', 'HEAD');
  };
  git('init', '--quiet', '--initial-branch=main');
  for (const room of ['token', 'proxy', 'issuer', 'injector']) await write(`src/${room}/old.ts`, room);
  const first = await commit('src/admin/old.ts');
  return {
    git,
    write,
    commit,
    first,
    pass: (seconds: number) => {
      now += seconds;
    },
    since: (revision: string) => filesOf({ kind: 'since', revision }, { root, env: {}, seed: '1' }).files,
    recent: (base?: string, seed = '1') =>
      filesOf({ kind: 'recent' }, { root, env: { CI_BASE: base }, seed }),
  };
}

it('what changed since a commit is what was committed, edited or added in the rooms', async () => {
  const { since, commit, write, git, first } = await repository();
  await commit('src/token/committed.ts');
  await commit('src/admin/elsewhere.ts');
  await commit('src/proxy/http1/notes.md');
  await write('src/proxy/old.ts', 'edited');
  await write('src/issuer/added.ts', 'new');
  git('rm', '--quiet', 'src/injector/old.ts');
  expect(since(first)).toEqual(['src/issuer/added.ts', 'src/proxy/old.ts', 'src/token/committed.ts']);
});

it('what others changed after the history parted is not meant', async () => {
  const { since, commit, git } = await repository();
  git('checkout', '--quiet', '-b', 'mine');
  await commit('src/token/mine.ts');
  git('checkout', '--quiet', 'main');
  await commit('src/token/theirs.ts');
  git('checkout', '--quiet', 'mine');
  expect(since('main')).toEqual(['src/token/mine.ts']);
});

it('a commit that is not there is named', async () => {
  const { since } = await repository();
  expect(() => since('nowhere')).toThrow('nowhere is no commit of this clone');
});

it('the recent is what changed since the base that CI names', async () => {
  const { recent, commit } = await repository();
  const base = await commit('src/token/before.ts');
  await commit('src/token/after.ts');
  expect(recent(base)).toEqual({
    files: ['src/token/after.ts'],
    because: `changed since ${base.slice(0, 12)}`,
    all: true,
  });
});

it.each([undefined, '', '0'.repeat(40), 'f'.repeat(40)])(
  'without such a base (%j) it is the last day of commits',
  async (base) => {
    const { recent, commit, pass, first } = await repository();
    pass(2 * DAY_SECONDS);
    await commit('src/token/yesterday.ts');
    pass(DAY_SECONDS / 2);
    await commit('src/proxy/today.ts');
    expect(recent(base)).toEqual({
      files: ['src/proxy/today.ts', 'src/token/yesterday.ts'],
      because: `changed since ${first.slice(0, 12)}`,
      all: true,
    });
  },
);

it('when nothing changed, or all there is has been made within a day, it is all rooms', async () => {
  const { recent, first } = await repository();
  for (const base of [first, undefined]) {
    expect(recent(base)).toMatchObject({
      files: ['src/token/old.ts', 'src/proxy/old.ts', 'src/issuer/old.ts', 'src/injector/old.ts'],
      all: true,
    });
  }
});

it('of many files it is a dozen, drawn by the seed', async () => {
  const { recent, write, commit, first } = await repository();
  for (let n = 0; n < 30; n++) await write(`src/token/${n}.ts`, 'new');
  await commit('src/token/last.ts');
  const { files, because, all } = recent(first);
  expect(new Set(files).size).toBe(12);
  expect(because).toContain('drawn from 31, changed since');
  expect(all).toBe(false);
  expect(recent(first).files).toEqual(files);
  expect(recent(first, '2').files).not.toEqual(files);
});
