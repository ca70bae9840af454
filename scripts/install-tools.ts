/**
 * Installs what the chart's tests run with into .cache/tools, once for each version: programs of the Go module proxy,
 * Prometheus from Debian, and the schemas of Kubernetes and of the custom resources. Afterwards the tests need no web.
 */

import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

const TOOLS = fileURLToPath(new URL('../.cache/tools/', import.meta.url));

/** Their checksums are those of Go's public checksum database. */
const GO_PROGRAMS = [
  'helm.sh/helm/v3/cmd/helm@v3.22.0',
  'sigs.k8s.io/kubectl-validate@v0.0.4',
  'sigs.k8s.io/kustomize/kustomize/v5@v5.8.1',
  'github.com/prometheus/alertmanager/cmd/alertmanager@v0.28.1',
  'github.com/rhysd/actionlint/cmd/actionlint@v1.7.12',
];

/** The newest Kubernetes that is supported; kubectl-validate brings the older ones. */
const KUBERNETES = { module: 'k8s.io/kubernetes@v1.36.3', directory: 'kubernetes-1.36' };

/** Modules that carry definitions of custom resources, and where. */
const CUSTOM_RESOURCES = [
  {
    module: 'github.com/prometheus-operator/prometheus-operator@v0.85.0',
    path: 'example/prometheus-operator-crd',
    files: /_(podmonitors|servicemonitors|prometheusrules)\.yaml$/,
  },
  {
    module: 'github.com/cert-manager/cert-manager@v1.21.2',
    path: 'deploy/crds',
    files: /_(certificates|issuers|clusterissuers)\.yaml$/,
  },
  {
    module: 'github.com/external-secrets/external-secrets@v1.3.2',
    path: 'config/crds/bases',
    files: /_(externalsecrets|secretstores)\.yaml$/,
  },
];

const PROMETHEUS_PROGRAMS = ['prometheus', 'promtool'];

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Runs `install` unless it has succeeded for this very version before. */
async function once(version: string, install: () => Promise<void>): Promise<void> {
  const stamp = join(TOOLS, 'installed', version.replaceAll('/', '_'));
  if (await stat(stamp).catch(() => undefined)) return;
  say(`installing ${version}`);
  await install();
  await writeFile(stamp, '');
}

/** One compiler process at a time: these builds share the machine with whatever else runs on it. */
async function installGoProgram(program: string): Promise<void> {
  const env = { ...process.env, GOBIN: join(TOOLS, 'bin'), GOMAXPROCS: '1' };
  await run('go', ['install', '-p', '1', program], { env, cwd: tmpdir() });
}

async function requireGo(): Promise<void> {
  if (await run('go', ['version']).catch(() => undefined)) return;
  throw new Error('go is not installed: the tools of the chart tests come from the Go module proxy');
}

/** Directory of a module's sources in Go's cache. */
async function downloadModule(module: string): Promise<string> {
  const { stdout } = await run('go', ['mod', 'download', '-json', module], { cwd: tmpdir() });
  return (JSON.parse(stdout) as { Dir: string }).Dir;
}

/** Lays the schemas out as kubectl-validate wants them: `api/v1.json`, `apis/<group>/<version>.json`. */
async function installKubernetesSchemas(): Promise<void> {
  const source = join(await downloadModule(KUBERNETES.module), 'api/openapi-spec/v3');
  const target = join(TOOLS, 'schemas', KUBERNETES.directory);
  for (const file of await readdir(source)) {
    const [, path] = /^(api__v1|apis__[^_]+__[^_]+)_openapi\.json$/.exec(file) ?? [];
    if (path === undefined) continue;
    await cp(join(source, file), join(target, `${path.replaceAll('__', '/')}.json`));
  }
}

async function installCustomResources({
  module,
  path,
  files,
}: (typeof CUSTOM_RESOURCES)[number]): Promise<void> {
  const source = join(await downloadModule(module), path);
  const wanted = (await readdir(source)).filter((file) => files.test(file));
  if (wanted.length === 0) throw new Error(`${module} has no file ${path}/${files}`);
  for (const file of wanted) await cp(join(source, file), join(TOOLS, 'crds', file));
}

/** A Prometheus on PATH is used as it is; otherwise Debian's package is unpacked, not installed. */
async function installPrometheus(): Promise<void> {
  const temporary = await mkdtemp(join(tmpdir(), 'prometheus-'));
  try {
    await run('apt-get', ['download', 'prometheus'], { cwd: temporary });
    const [archive] = (await readdir(temporary)).filter((file) => file.endsWith('.deb'));
    if (archive === undefined) throw new Error('apt-get download left no package of prometheus');
    await run('dpkg-deb', ['-x', archive, 'unpacked'], { cwd: temporary });
    for (const program of PROMETHEUS_PROGRAMS) {
      await cp(join(temporary, 'unpacked/usr/bin', program), join(TOOLS, 'bin', program));
    }
  } finally {
    await rm(temporary, { recursive: true });
  }
}

async function onPath(program: string): Promise<boolean> {
  return run(program, ['--version']).then(
    () => true,
    () => false,
  );
}

await requireGo();
for (const directory of ['bin', 'installed', 'crds'])
  await mkdir(join(TOOLS, directory), { recursive: true });
for (const program of GO_PROGRAMS) await once(program, () => installGoProgram(program));
await once(KUBERNETES.module, installKubernetesSchemas);
for (const source of CUSTOM_RESOURCES) await once(source.module, () => installCustomResources(source));
if (!(await onPath('promtool')) || !(await onPath('prometheus'))) await once('prometheus', installPrometheus);
