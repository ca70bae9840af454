/** What is known of the programs that the pages call: enough to find a flag, file or script that there is not. */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import manifest from '../../package.json' with { type: 'json' };
import { COMMANDS } from '../../src/cli/all.ts';
import type { Command } from '../../src/config/command.ts';
import { readSettings, unknownVariables } from '../../src/config/settings.ts';
import { describeProblem } from '../../src/platform/problems.ts';
import { CHART, run } from '../chart/tools.ts';
import { ROOT } from './blocks.ts';
import type { SimpleCommand } from './shell.ts';

const BY_NAME = new Map(
  await Promise.all(
    Object.entries(COMMANDS).map(async ([name, load]): Promise<[string, Command]> => [name, await load()]),
  ),
);

const SCRIPTS: Readonly<Record<string, string>> = manifest.scripts;

/** What the admin listeners answer. */
const ADMIN_PATHS = [
  '/',
  '/livez',
  '/readyz',
  '/startupz',
  '/metrics',
  '/api/status',
  '/api/renew',
  '/api/log-level',
  '/quitquitquit',
  '/jwks',
];

/** Of kubectl: what the pages use of it. */
const KUBECTL_VERBS = [
  'annotate',
  'apply',
  'cp',
  'create',
  'delete',
  'describe',
  'exec',
  'get',
  'label',
  'logs',
  'patch',
  'port-forward',
  'rollout',
  'run',
  'scale',
  'top',
  'wait',
];
const KUBECTL_FLAGS = [
  'all',
  'all-containers',
  'all-namespaces',
  'audience',
  'command',
  'container',
  'dry-run',
  'field-selector',
  'filename',
  'follow',
  'for',
  'from-file',
  'from-literal',
  'ignore-not-found',
  'image',
  'kubeconfig',
  'labels',
  'namespace',
  'output',
  'overwrite',
  'patch',
  'previous',
  'replicas',
  'restart',
  'rm',
  'selector',
  'show-labels',
  'since',
  'stdin',
  'tail',
  'timeout',
  'tty',
  'type',
  'watch',
];

/** Says what is wrong with a call, or that nothing is known of the program. */
type Judge = (args: readonly string[], command: SimpleCommand) => string[] | Promise<string[]>;

const nothing: Judge = () => [];

function missingFiles(words: readonly string[]): string[] {
  return words.filter((word) => !existsSync(join(ROOT, word))).map((word) => `there is no file ${word}`);
}

/** token-sidecar itself, by its own reading of flags and variables. */
const tokenSidecar: Judge = (args, { env }) => {
  const [first, ...rest] = args;
  if (first === undefined || ['--version', 'help', 'completion'].includes(first)) return [];
  const isNamed = !first.startsWith('-');
  const name = isNamed ? first : 'proxy';
  const command = BY_NAME.get(name);
  if (command === undefined) return first === '--help' ? [] : [`there is no command ${name}`];
  if (args.includes('--help')) return [];
  try {
    readSettings(command.settings, isNamed ? rest : args, {});
  } catch (error) {
    return [String(error)];
  }
  return unknownVariables(command.settings, env).map(describeProblem);
};

const node: Judge = (args, command) => {
  const [script = '', ...rest] = args;
  if (script === '-e') return [];
  if (script === 'src/main.ts' || script.endsWith('/token-sidecar.js')) return tokenSidecar(rest, command);
  return missingFiles([script]);
};

const npm: Judge = ([verb = '', name = '', separator, ...rest], command) => {
  if (['ci', 'install', 'audit', 'pack'].includes(verb)) return [];
  if (verb === 'run' && name === 'token-sidecar' && separator === '--') return tokenSidecar(rest, command);
  const script = verb === 'run' ? name : verb;
  return Object.hasOwn(SCRIPTS, script) ? [] : [`there is no npm script ${script}`];
};

const npx: Judge = (args, command) => {
  const [program = '', ...rest] = args.filter((word) => word !== '--yes');
  if (program === 'node') return node(rest, command);
  if (program === 'vitest') return missingFiles(rest.filter((word) => word.startsWith('test/')));
  return program === 'token-sidecar' ? tokenSidecar(rest, command) : [`npx ${program} is not known`];
};

/** The release is rendered, with what it sets. */
const helm: Judge = async ([verb = '', name = '', chart = '', ...flags]) => {
  if (['uninstall', 'rollback', 'test'].includes(verb)) return [];
  if (!['install', 'upgrade', 'template'].includes(verb)) return [`helm ${verb} is not known`];
  const local = /^oci:\/\/ghcr\.io\/token-sidecar\/charts\/token-sidecar$|^charts\/token-sidecar$/.test(
    chart,
  );
  if (!local) return [`${chart} is not the chart`];
  const sets = flags.flatMap((word, at) => (word === '--set' ? ['--set', flags[at + 1] as string] : []));
  const values = flags.flatMap((word, at) =>
    word === '--values' ? ['--values', flags[at + 1] as string] : [],
  );
  const { ok, stderr } = await run(
    'helm',
    ['template', name, CHART, '--kube-version', '1.30.0', ...sets, ...values],
    { cwd: ROOT },
  );
  return ok ? [] : [stderr];
};

const kubectl: Judge = (args, command) => {
  const end = args.indexOf('--');
  const own = end === -1 ? args : args.slice(0, end);
  const inside = end === -1 ? [] : args.slice(end + 1);
  const verb = own.filter((word, at) => !word.startsWith('-') && own[at - 1] !== '--namespace')[0] ?? '';
  const flags = own
    .filter((word) => word.startsWith('--'))
    .map((word) => word.slice(2).split('=')[0] as string);
  return [
    ...(KUBECTL_VERBS.includes(verb) ? [] : [`kubectl ${verb} is not known`]),
    ...flags.filter((flag) => !KUBECTL_FLAGS.includes(flag)).map((flag) => `kubectl --${flag} is not known`),
    ...(verb === 'exec' && inside[0] === 'node' ? (node(inside.slice(1), command) as string[]) : []),
  ];
};

const curl: Judge = (args) =>
  args
    .filter((word) => /^https?:\/\/(localhost|127\.0\.0\.1):150(81|91)/.test(word))
    .map((url) => new URL(url).pathname)
    .filter((path) => !ADMIN_PATHS.includes(path))
    .map((path) => `the admin listener has no ${path}`);

const docker: Judge = (args) => {
  const isBuild = args[0] === 'build' || (args[0] === 'buildx' && args[1] === 'build');
  if (!isBuild) return [];
  const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');
  return args
    .flatMap((word, at) => (args[at - 1] === '--build-arg' ? [word.split('=')[0] as string] : []))
    .filter((name) => !new RegExp(`^ARG ${name}\\b`, 'm').test(dockerfile))
    .map((name) => `Dockerfile has no ARG ${name}`);
};

export const PROGRAMS: Readonly<Record<string, Judge>> = {
  'token-sidecar': tokenSidecar,
  node,
  npm,
  npx,
  helm,
  kubectl,
  curl,
  docker,
  kind: ([verb = '']) =>
    ['create', 'load', 'delete', 'get'].includes(verb) ? [] : [`kind ${verb} is not known`],
  bash: (args) => missingFiles(args.filter((word) => !word.startsWith('-'))),
  // What a system has, or what is somebody else's: its flags are not looked at.
  ...Object.fromEntries(
    [
      'base64',
      'cat',
      'cd',
      'cosign',
      'cp',
      'date',
      'diff',
      'gh',
      'git',
      'grep',
      'grpcurl',
      'jq',
      'kill',
      'mkdir',
      'openssl',
      'pip',
      'printf',
      'python3',
      'rm',
      'sleep',
      'tail',
      'wait',
    ].map((name) => [name, nothing]),
  ),
};
