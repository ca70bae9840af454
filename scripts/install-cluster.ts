/**
 * Installs what a cluster of one node is made of: etcd, containerd and their like from Debian, and Kubernetes, CoreDNS
 * and Helm compiled from the Go module proxy, once for each version, outside the tree. The first run takes ten
 * minutes on two cores, each later one a second.
 */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  CACHE,
  CNI_BIN,
  COREDNS,
  COREDNS_BIN,
  HELM,
  HELM_BIN,
  KUBERNETES,
  KUBERNETES_BIN,
} from '../test/cluster/node/versions.ts';
import { type DebianProgram, installDebianPrograms, isInstalled } from './debian-programs.ts';

const run = promisify(execFile);

const DEBIAN_PROGRAMS: readonly DebianProgram[] = [
  ['etcd', 'etcd-server'],
  ['containerd', 'containerd'],
  ['runc', 'runc'],
  ['ip', 'iproute2'],
  ['iptables', 'iptables'],
  ['conntrack', 'conntrack'],
  ['ipset', 'ipset'],
  ['socat', 'socat'],
  ['openssl', 'openssl'],
  [join(CNI_BIN, 'bridge'), 'containernetworking-plugins'],
];

const KUBERNETES_PROGRAMS = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'kube-proxy',
  'kubectl',
];

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Compiles with low priority: the machine may have other work. */
async function go(
  directory: string,
  environment: Record<string, string>,
  ...args: string[]
): Promise<string> {
  const { stdout } = await run('nice', ['-n', '10', 'go', ...args], {
    cwd: directory,
    env: { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=mod', ...environment },
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
}

/**
 * A module around k8s.io/kubernetes. Its own go.mod replaces the staging modules by directories that are not in the
 * module proxy; here they are replaced by the releases of the same minor.
 */
async function wrapKubernetes(directory: string): Promise<void> {
  if (existsSync(join(directory, 'go.sum'))) return;
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'go.mod'), 'module cluster\n\ngo 1.24.0\n');
  const downloaded = await go(directory, {}, 'mod', 'download', '-json', `k8s.io/kubernetes@${KUBERNETES}`);
  const upstream = await readFile((JSON.parse(downloaded) as { GoMod: string }).GoMod, 'utf8');
  const goVersion = /^go (\S+)$/m.exec(upstream)?.[1];
  const staging = [...upstream.matchAll(/^\s+(k8s\.io\/[a-z0-9-]+) => \.\/staging/gm)].map(
    ([, name]) => name,
  );
  if (goVersion === undefined || staging.length === 0) {
    throw new Error(`the go.mod of k8s.io/kubernetes ${KUBERNETES} is not laid out as expected`);
  }
  const replaced = staging.map((name) => `\t${name} => ${name} ${KUBERNETES.replace(/^v1\./, 'v0.')}`);
  await writeFile(
    join(directory, 'go.mod'),
    `module cluster\n\ngo ${goVersion}\n\nrequire k8s.io/kubernetes ${KUBERNETES}\n\nreplace (\n${replaced.join('\n')}\n)\n`,
  );
  const imports = KUBERNETES_PROGRAMS.map((program) => `import _ "k8s.io/kubernetes/cmd/${program}"`);
  await writeFile(
    join(directory, 'programs.go'),
    `//go:build programs\n\npackage cluster\n\n${imports.join('\n')}\n`,
  );
  await go(directory, {}, 'mod', 'tidy', '-e');
}

async function buildKubernetes(): Promise<void> {
  const missing = KUBERNETES_PROGRAMS.filter((program) => !existsSync(join(KUBERNETES_BIN, program)));
  if (missing.length === 0) return;
  const directory = join(CACHE, `build-${KUBERNETES}`);
  await wrapKubernetes(directory);
  await mkdir(KUBERNETES_BIN, { recursive: true });
  const [major, minor] = KUBERNETES.slice(1).split('.');
  const version = {
    gitVersion: KUBERNETES,
    gitMajor: major,
    gitMinor: minor,
    gitTreeState: 'clean',
  };
  const stamped = Object.entries(version)
    .map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`)
    .join(' ');
  for (const program of missing) {
    say(`compiling ${program} ${KUBERNETES}`);
    const unfinished = join(KUBERNETES_BIN, `${program}.unfinished`);
    await go(
      directory,
      {},
      'build',
      '-trimpath',
      '-ldflags',
      `-s -w ${stamped}`,
      '-o',
      unfinished,
      `k8s.io/kubernetes/cmd/${program}`,
    );
    await rename(unfinished, join(KUBERNETES_BIN, program));
  }
}

/** What the cluster's Corefile names. All of CoreDNS has the clients of three clouds besides, which take minutes to compile. */
const COREDNS_PLUGINS = ['bind', 'cache', 'errors', 'kubernetes'];

async function buildCoreDns(): Promise<void> {
  const program = join(COREDNS_BIN, 'coredns');
  if (existsSync(program)) return;
  say(`compiling CoreDNS ${COREDNS}`);
  const module = 'github.com/coredns/coredns';
  const directory = join(CACHE, `build-coredns-${COREDNS}`);
  await mkdir(directory, { recursive: true });
  await mkdir(COREDNS_BIN, { recursive: true });
  await writeFile(join(directory, 'go.mod'), `module coredns\n\ngo 1.24.0\n\nrequire ${module} ${COREDNS}\n`);
  const imports = COREDNS_PLUGINS.map((plugin) => `import _ "${module}/plugin/${plugin}"`);
  await writeFile(
    join(directory, 'main.go'),
    `package main\n\n${imports.join('\n')}\nimport "${module}/coremain"\n\nfunc main() { coremain.Run() }\n`,
  );
  await go(directory, {}, 'mod', 'tidy');
  const unfinished = `${program}.unfinished`;
  await go(directory, {}, 'build', '-trimpath', '-ldflags', '-s -w', '-o', unfinished, '.');
  await rename(unfinished, program);
}

async function installGoProgram(bin: string, program: string, name: string): Promise<void> {
  if (existsSync(join(bin, name))) return;
  say(`compiling ${program}`);
  await mkdir(bin, { recursive: true });
  await go(bin, { GOBIN: bin, GOFLAGS: '' }, 'install', '-trimpath', '-ldflags', '-s -w', program);
}

if (process.platform !== 'linux' || process.getuid?.() !== 0) {
  // The suite says why it can't run, and whether that is an error.
  say('a cluster needs Linux and root: nothing is installed');
} else {
  if (!isInstalled('go'))
    throw new Error('go is not installed: Kubernetes is compiled from the Go module proxy');
  installDebianPrograms(DEBIAN_PROGRAMS);
  await mkdir(CACHE, { recursive: true });
  await buildKubernetes();
  await buildCoreDns();
  await installGoProgram(HELM_BIN, `helm.sh/helm/v3/cmd/helm@${HELM}`, 'helm');
}
