import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { appContainersPatch } from '../../../src/injector/pod/app-containers.ts';
import { TRUST } from '../../../src/injector/pod/pod.ts';
import {
  API,
  API_ADDRESS,
  API_BY_IPV6,
  type Arrived,
  FORGER_ADDRESS,
  FORGER_TRUST,
  IN_POD,
  MAKE_POD,
  OTHER_PORT,
  OUTSIDE,
  type WorldMode,
} from './surroundings.ts';

const run = promisify(execFile);

/** Inside of the namespaces: the network, the files that say where names lead, and a place for what is to be trusted. */
const ENTER = `
set -e
ip link set lo up
ip address add ${API_ADDRESS}/32 dev lo
ip address add ${FORGER_ADDRESS}/32 dev lo
mount --bind "$2/hosts" /etc/hosts
mount --bind "$2/resolv.conf" /etc/resolv.conf
mount -t tmpfs tmpfs /run
if [ "$1" = redirect ]; then ${MAKE_POD} fi
exec "$0" "$3" "$1" "$2"
`;

export interface World {
  /** What arrived so far. */
  readonly arrived: readonly Arrived[];
  /** The sidecar's lines about clients that did not trust it. */
  readonly rejections: readonly string[];
  /**
   * Runs a client in there with the environment that the injector gives an app.
   * @returns what it printed.
   * @throws {Error} where it fails.
   */
  client(command: string, args: readonly string[], env?: Readonly<Record<string, string>>): Promise<string>;
  /** The same for a client that trusts the forger in the sidecar's place. */
  deceived: World['client'];
  /** What a command is put behind to run in there, with this process's environment. */
  readonly enter: readonly string[];
  /** What the API shows, in files: for a server in its place at OTHER_PORT. */
  readonly identity: { readonly cert: string; readonly key: string };
  /** Process of the sidecar. */
  readonly sidecar: number;
  stop(): Promise<void>;
}

export async function startWorld(mode: WorldMode): Promise<World> {
  const directory = await mkdtemp(join(tmpdir(), `token-sidecar-${mode}-`));
  // For the sidecar, which runs as another user where connections are told by that.
  await chmod(directory, 0o755);
  await writeFiles(directory, mode);
  const child = spawn(
    'unshare',
    [
      '--net',
      '--mount',
      '--',
      'bash',
      '-c',
      ENTER,
      process.execPath,
      mode,
      directory,
      join(import.meta.dirname, 'world.ts'),
    ],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  const arrived: Arrived[] = [];
  const rejections: string[] = [];
  const sidecar = await new Promise<number>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the world ended with ${code}`)));
    createInterface({ input: child.stdout }).on('line', (line) => {
      const told = JSON.parse(line) as Arrived | { ready: number } | { log: string };
      if ('ready' in told) resolve(told.ready);
      else if ('log' in told) rejections.push(told.log);
      else arrived.push(told);
    });
  });
  const trusting = (trust: string): Readonly<Record<string, string>> =>
    Object.fromEntries(
      Object.entries(appVariables(mode)).map(([name, value]) => [
        name,
        value.replaceAll(TRUST.directory, trust),
      ]),
    );
  const enter = ['nsenter', '--target', String(child.pid), '--net', '--mount', `--wd=${directory}`, '--'];
  const runIn =
    (environment: Readonly<Record<string, string>>): World['client'] =>
    async (command, args, env = {}) => {
      const { PATH = '' } = process.env;
      const pod = mode === 'redirect' ? IN_POD : [];
      const [nsenter, ...rest] = [...enter, ...pod, command, ...args] as [string, ...string[]];
      const { stdout } = await run(nsenter, rest, {
        env: { PATH, HOME: directory, LANG: 'C.UTF-8', ...environment, ...env },
        cwd: directory,
        timeout: 100_000,
      });
      return stdout;
    };
  return {
    arrived,
    rejections,
    enter,
    identity: { cert: join(directory, 'api.crt'), key: join(directory, 'api.key') },
    sidecar,
    client: runIn(trusting(TRUST.directory)),
    deceived: runIn(trusting(join(directory, FORGER_TRUST))),
    async stop() {
      await ended(child);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function ended(child: ChildProcess): Promise<void> {
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.stdin?.end();
  await exited;
}

/** What the injector gives a container that says nothing itself. */
function appVariables(mode: WorldMode): Readonly<Record<string, string>> {
  const patch = appContainersPatch('containers', [{ name: 'app' }], {
    mode,
    intercepts: true,
    tokenFiles: false,
  });
  const variables = patch.find(({ path }) => path.endsWith('/env'))?.value;
  const pairs = (variables as { name: string; value: string }[]).map(({ name, value }) => [name, value]);
  return Object.fromEntries(pairs);
}

async function writeFiles(directory: string, mode: WorldMode): Promise<void> {
  const local = '127.0.0.1 localhost\n';
  const lines: Readonly<Record<WorldMode, string>> = {
    forward: '',
    hosts: `127.0.0.2 ${API}\n`,
    // Without the name server, which has IPv4 alone.
    redirect: `${OUTSIDE.ipv6} ${API_BY_IPV6}\n`,
  };
  const files: Readonly<Record<string, string>> = {
    hosts: local + lines[mode],
    'resolv.conf': `nameserver ${mode === 'redirect' ? OUTSIDE.ipv4 : '127.0.0.1'}\n`,
    // What wget of GnuTLS trusts is in no variable.
    wgetrc: `ca_certificate = ${TRUST.directory}/bundle.pem\n`,
    'wgetrc-deceived': `ca_certificate = ${join(directory, FORGER_TRUST)}/bundle.pem\n`,
    'sidecar.json': JSON.stringify(configuration(directory, mode)),
    'secret/client_id': 'shop',
    'secret/client_secret': 'a secret of the world',
  };
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true });
    await writeFile(join(directory, name), content);
  }
  await Promise.all([writeRepository(directory), writePythonIndex(directory), writeNpmRegistry(directory)]);
}

function configuration(directory: string, mode: WorldMode): object {
  const tls = { caFile: join(directory, 'api.crt') };
  const listed = {
    forward: {
      forwardProxy: {
        allow: [
          { host: API, tls },
          { host: API, port: OTHER_PORT, tls },
        ],
        connect: 'intercept',
        otherHosts: 'pass',
      },
    },
    hosts: {
      capture: {
        hosts: [{ host: API, address: '127.0.0.2', ports: [443, OTHER_PORT], clearPorts: [80], tls }],
      },
    },
    redirect: {
      redirect: {
        hosts: [...[API, API_BY_IPV6].map((host) => ({ host, tls })), { host: API, port: OTHER_PORT, tls }],
      },
    },
  };
  const provider = mode === 'redirect' ? OUTSIDE.ipv4 : '127.0.0.1';
  return {
    credentials: [
      {
        name: 'default',
        tokenUrl: `http://${provider}:8080/token`,
        allowInsecureTokenUrl: true,
        dir: join(directory, 'secret'),
      },
    ],
    interception: { directory: TRUST.directory },
    ...listed[mode],
  };
}

/** Served as files, which git asks for one by one. */
async function writeRepository(directory: string): Promise<void> {
  const work = join(directory, 'work');
  const served = join(directory, 'served/repository/project.git');
  const git = (...args: string[]) =>
    run('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args]);
  await git('init', '--quiet', work);
  await writeFile(join(work, 'README'), 'a file of the repository\n');
  await git('-C', work, 'add', '.');
  await git('-C', work, 'commit', '--quiet', '--message', 'first');
  await git('clone', '--quiet', '--bare', work, served);
  await git('-C', served, 'update-server-info');
}

/** One package, as an archive of its source would need tools that are not there: a wheel, which is a zip. */
async function writePythonIndex(directory: string): Promise<void> {
  const name = 'from_index-1.0-py3-none-any.whl';
  const place = join(directory, 'served/index/from-index');
  await mkdir(place, { recursive: true });
  await writeFile(join(place, 'index.html'), `<a href="${name}">${name}</a>`);
  const script = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
    wheel.writestr('from_index.py', 'WORD = "installed"\\n')
    meta = 'from_index-1.0.dist-info/'
    wheel.writestr(meta + 'METADATA', 'Metadata-Version: 2.1\\nName: from-index\\nVersion: 1.0\\n')
    wheel.writestr(meta + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(meta + 'RECORD', '')
`;
  await run('python3', ['-c', script, join(place, name)]);
}

async function writeNpmRegistry(directory: string): Promise<void> {
  const place = join(directory, 'served/npm');
  const source = join(directory, 'npm-source/package');
  await Promise.all([mkdir(place, { recursive: true }), mkdir(source, { recursive: true })]);
  const manifest = { name: 'from-registry', version: '1.0.0', main: 'index.js' };
  await writeFile(join(source, 'package.json'), JSON.stringify(manifest));
  await writeFile(join(source, 'index.js'), 'module.exports = "installed";\n');
  const { stdout } = await run('tar', ['--create', '--directory', dirname(source), 'package'], {
    encoding: 'buffer',
  });
  await mkdir(join(place, 'archives'));
  await writeFile(join(place, 'archives/from-registry-1.0.0.tgz'), gzipSync(stdout));
  const tarball = `https://${API}/npm/archives/from-registry-1.0.0.tgz`;
  const document = {
    name: manifest.name,
    'dist-tags': { latest: '1.0.0' },
    versions: { '1.0.0': { ...manifest, dist: { tarball } } },
  };
  await writeFile(join(place, 'from-registry'), JSON.stringify(document));
}
