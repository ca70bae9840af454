/** The npm package as its users get it: packed, installed in an empty directory, run on the Nodes that they have. */

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { type BuiltCopy, buildCopy } from '../bundle/built-copy.ts';
import { binOf, NODES, type UsersNode } from './nodes.ts';

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

let copy: BuiltCopy;
let tarball: string;
let scratch: string;

beforeAll(async () => {
  copy = await buildCopy('project');
  scratch = await mkdtemp(join(tmpdir(), 'token-sidecar-package-'));
  const packed = await run(process.execPath, ['scripts/package.ts', scratch], {
    cwd: copy.root,
    env: { PATH: process.env['PATH'] ?? '' },
  });
  expect(packed).toMatchObject({ code: 0 });
  tarball = packed.stdout.trim();
}, 300_000);

afterAll(async () => {
  await copy?.remove();
  if (scratch !== undefined) await rm(scratch, { recursive: true });
});

function run(
  command: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env: Readonly<Record<string, string>> },
): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(command, args, { ...options, encoding: 'utf8' }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : null;
      resolve({ code, stdout, stderr });
    });
  });
}

/** An environment in which `node` is that of the user, and npm has nothing of this machine's but its cache. */
function environment(node: UsersNode, more: Readonly<Record<string, string>> = {}): Record<string, string> {
  const { PATH = '', HOME = '' } = process.env;
  return { PATH: [binOf(node), PATH].join(delimiter), HOME, ...more };
}

/** npm of this machine: it asks `env` for node, and thereby runs on the user's. */
function npm(node: UsersNode, args: readonly string[], cwd: string): Promise<Ended> {
  const quiet = { npm_config_audit: 'false', npm_config_fund: 'false', npm_config_update_notifier: 'false' };
  return run('npm', args, { cwd, env: environment(node, quiet) });
}

async function emptyDirectory(): Promise<string> {
  const directory = await mkdtemp(join(scratch, 'empty-'));
  await mkdir(join(directory, 'home'));
  return directory;
}

describe('the package', () => {
  it('depends on nothing, and brings no Node of its own', async () => {
    const directory = await emptyDirectory();
    await run('tar', ['-xzf', tarball, '-C', directory], { env: { PATH: process.env['PATH'] ?? '' } });
    const packed = JSON.parse(await readFile(join(directory, 'package/package.json'), 'utf8'));
    expect(Object.keys(packed).filter((key) => /dependencies|scripts|private/i.test(key))).toEqual([]);
    expect(packed).toMatchObject({
      name: 'token-sidecar',
      version: manifest.version,
      engines: manifest.engines,
    });
    expect((await readdir(join(directory, 'package'))).sort()).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'dist',
      'package.json',
      'schema',
    ]);
  });

  it('is published from what is packed alone', () => expect(manifest.private).toBe(true));
});

const supported = NODES.filter(({ isSupported }) => isSupported).map((node) => [node.version, node] as const);
const old = NODES.filter(({ isSupported }) => !isSupported).map((node) => [node.version, node] as const);

describe.each(supported)('on Node %s', (version, node) => {
  let prefix: string;
  let program: string;

  beforeAll(async () => {
    prefix = await emptyDirectory();
    const installed = await npm(node, ['install', '--global', '--prefix', prefix, tarball], prefix);
    expect(installed).toMatchObject({ code: 0, stderr: expect.not.stringMatching(/EBADENGINE|deprecated/) });
    program = join(prefix, 'bin/token-sidecar');
  });

  const started = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    run(program, args, { cwd: prefix, env: environment(node, env) });

  it('`npm install --global` installs one package, and the command runs', async () => {
    expect(await readdir(join(prefix, 'lib/node_modules'))).toEqual(['token-sidecar']);
    expect(await readdir(join(prefix, 'lib/node_modules/token-sidecar'))).not.toContain('node_modules');
    expect(await started(['--version'])).toEqual({
      code: 0,
      stdout: expect.stringMatching(
        `^token-sidecar ${manifest.version} \\(revision \\w+, Node ${version}\\)\n$`,
      ),
      stderr: '',
    });
  });

  it('`npx` runs it', async () => {
    const directory = await emptyDirectory();
    const args = ['exec', '--yes', `--package=${tarball}`, '--', 'token-sidecar', 'explain', '77'];
    expect(await npm(node, args, directory)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('The identity provider rejected the credentials'),
    });
  });

  it('every command can be loaded', async () => {
    const { code, stdout, stderr } = await started(['--help']);
    expect([code, stderr]).toEqual([0, '']);
    for (const command of ['proxy', 'gateway', 'issuer', 'injector', 'inject', 'check', 'redirect', 'demo']) {
      expect(stdout).toContain(`  ${command} `);
    }
  });

  it('a sidecar gets a token and puts it into requests, on the way to an API that verifies it', async () => {
    const names = ['listen', 'admin-listen', 'issuer-listen', 'issuer-admin-listen', 'api-listen'];
    const flags = ['--token-lifetime=30s', ...names.map((name) => `--${name}=127.0.0.1:0`)];
    const demo = spawn(program, ['demo', ...flags], { cwd: prefix, env: environment(node) });
    onTestFinished(() => void demo.kill('SIGKILL'));
    const url = await printedUrl(demo);
    const answer = await fetch(url);
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('demo-app')]);
    const ended = once(demo, 'exit');
    demo.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  });

  it('`check` looks at a file', async () => {
    const { code, stdout } = await started(['check', '--offline', '--json'], {
      TOKEN_SIDECAR_AUTH_URL: 'https://sso.example.com',
      TOKEN_SIDECAR_UPSTREAM: 'https://api.example.com',
      TOKEN_SIDECAR_CREDENTIALS_DIR: '/nonexistent',
    });
    expect(code).toBe(78);
    expect(JSON.parse(stdout).findings[1]).toMatchObject({ step: 'mounted_secret', verdict: 'failure' });
  });
});

describe.each(old)('on Node %s, which is too old', (version, node) => {
  it('says so in one plain sentence', async () => {
    const directory = await emptyDirectory();
    await run('tar', ['-xzf', tarball, '-C', directory], { env: { PATH: process.env['PATH'] ?? '' } });
    const bin = join(directory, 'package', manifest.bin['token-sidecar']);
    expect(await run(join(binOf(node), 'node'), [bin, 'check'], { env: environment(node) })).toEqual({
      code: 78,
      stdout: '',
      stderr: `token-sidecar: Node 22.15, 23.10 or later is needed, and this is ${version}: see https://nodejs.org\n`,
    });
  });
});

it('the oldest Node is the same wherever it is said', async () => {
  const launcher = await readFile(join(dirname(import.meta.dirname), '../src/launcher.ts'), 'utf8');
  const build = await readFile(join(dirname(import.meta.dirname), '../scripts/build/program.ts'), 'utf8');
  const [, line = '', next = ''] = /^\^(\d+\.\d+) \|\| >=(\d+\.\d+)$/.exec(manifest.engines.node) ?? [];
  const atLeast = (version: string) => version.replace('.', ' && minor >= ');
  expect(launcher).toContain(`'${line}, ${next}'`);
  expect(launcher).toContain(`major === ${atLeast(line)}`);
  expect(launcher).toContain(`major === ${atLeast(next)}`);
  expect(build).toContain(`'node${line}'`);
});

/** Where the demo says that its API is reached through the sidecar. */
function printedUrl(demo: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = '';
    // It goes on talking, and ends when nobody listens.
    demo.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
      const [, url] = /(http:\/\/127\.0\.0\.1:\d+\/whoami) /.exec(output) ?? [];
      if (url !== undefined) resolve(url);
    });
    demo.once('exit', () => reject(new Error(`the demo has ended:\n${output}`)));
  });
}
