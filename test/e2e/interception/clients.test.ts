/** Real, unmodified clients that know nothing but what the injector gives an app, and whose requests arrive with the token. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLIENTS, GO_PROGRAM, PYTHON_PACKAGES, RUST_PROGRAM } from './programs.ts';
import { startWorld, type World } from './start-world.ts';
import { API, BODY, FORGED, GOOD, OTHER, type WorldMode } from './surroundings.ts';

/** How a client is run, and its URL. */
type Client = (run: World['client'], url: string, wgetrc?: string) => Promise<string>;

const python =
  (library: string): Client =>
  (run, url) =>
    run('python3', [join(CLIENTS, 'python/call.py'), library, url], { PYTHONPATH: PYTHON_PACKAGES });

const node =
  (library: string): Client =>
  (run, url) =>
    run(process.execPath, [join(CLIENTS, 'node/call.js'), library, url]);

const java =
  (library: string): Client =>
  (run, url) =>
    run('java', ['-XX:TieredStopAtLevel=1', join(CLIENTS, 'java/Call.java'), library, url]);

/** Each prints what the API says at the URL. */
const READERS: Readonly<Record<string, Client>> = {
  curl: (run, url) => run('curl', ['--silent', '--show-error', '--fail', url]),
  wget: (run, url, wgetrc = 'wgetrc') =>
    run('wget', ['--quiet', '--output-document=-', url], { WGETRC: wgetrc }),
  'Node fetch': node('fetch'),
  'Node axios': node('axios'),
  'Node undici': node('undici'),
  'Node WebSocket': node('WebSocket'),
  'Python requests': python('requests'),
  'Python httpx': python('httpx'),
  'Python aiohttp': python('aiohttp'),
  'Python urllib': python('urllib'),
  'Go net/http': (run, url) => run(GO_PROGRAM, [url]),
  'Java HttpClient': java('HttpClient'),
  'Java URLConnection': java('URLConnection'),
  'Rust reqwest, native-tls': (run, url) => run(RUST_PROGRAM, ['native-tls', url]),
  'Rust reqwest, rustls-native-certs': (run, url) => run(RUST_PROGRAM, ['rustls', url]),
};

/** Those that heed no proxy by themselves, or only by a library that an app would have to add. */
const WITHOUT_PROXY: Readonly<Record<string, Client>> = { 'Node ws': node('ws') };

/** One of each verifier: OpenSSL, as three programs use it, GnuTLS, Go, Java, rustls. */
const VERIFIERS = [
  'curl',
  'Node fetch',
  'Python requests',
  'Rust reqwest, native-tls',
  'wget',
  'Go net/http',
  'Java HttpClient',
  'Rust reqwest, rustls-native-certs',
];

const GRPC_METHOD = '/world.Echo/Say';

const GRPC: Readonly<Record<string, (world: World, text: string) => Promise<string>>> = {
  'grpc-js': (world, text) =>
    world.client(process.execPath, [join(CLIENTS, 'node/grpc-call.js'), API, GRPC_METHOD, text]),
  'grpcio (Python)': (world, text) =>
    world.client('python3', [join(CLIENTS, 'python/grpc_call.py'), API, GRPC_METHOD, text], {
      PYTHONPATH: PYTHON_PACKAGES,
    }),
};

describe.each<WorldMode>(['forward', 'hosts', 'redirect'])('in the mode %s', (mode) => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld(mode);
  });
  afterAll(() => world.stop());

  const arrivedAt = (path: string) => world.arrived.filter((arrived) => arrived.path.startsWith(path));

  const readers = mode !== 'forward' ? { ...READERS, ...WITHOUT_PROXY } : READERS;
  it.each(Object.entries(readers))('%s gets the token', async (name, client) => {
    const path = `/${encodeURIComponent(name)}`;
    expect(await client(world.client, `https://${API}${path}`)).toBe(BODY);
    const [arrived, ...more] = arrivedAt(path);
    expect(arrived).toMatchObject({ host: API, token: 'ours' });
    expect(more).toEqual([]);
  });

  it('openssl s_client gets the token, over a verified connection', async () => {
    const proxy = mode === 'forward' ? ['-proxy', '127.0.0.1:15080'] : [];
    const ask = `printf 'GET /s_client HTTP/1.1\\r\\nHost: ${API}\\r\\nConnection: close\\r\\n\\r\\n' | "$@"`;
    const client = ['openssl', 's_client', '-quiet', '-verify_return_error', '-verify_hostname', API];
    const where = ['-connect', `${API}:443`, ...proxy];
    const printed = await world.client('sh', ['-c', ask, 'sh', ...client, ...where]);
    expect(printed).toContain(BODY);
    expect(arrivedAt('/s_client').map(({ token }) => token)).toEqual(['ours']);
  });

  it.each(Object.entries(GRPC))('%s calls with the token', async (name, call) => {
    const before = arrivedAt(GRPC_METHOD).length;
    expect(await call(world, `hello of ${name}`)).toBe(`hello of ${name}`);
    expect(arrivedAt(GRPC_METHOD).slice(before)).toEqual([
      { path: GRPC_METHOD, host: API, version: '2.0', token: 'ours' },
    ]);
  });

  it('git clones with the token', async () => {
    const place = `clone-${mode}`;
    await world.client('git', ['clone', '--quiet', `https://${API}/repository/project.git`, place]);
    expect(await world.client('cat', [`${place}/README`])).toBe('a file of the repository\n');
    expect(new Set(arrivedAt('/repository/').map(({ token }) => token))).toEqual(new Set(['ours']));
  });

  it('pip installs from a private index with the token', async () => {
    const index = `https://${API}/index/`;
    const args = ['--quiet', '--disable-pip-version-check', '--no-cache-dir', '--target', 'packages'];
    await world.client('python3', ['-m', 'pip', 'install', ...args, '--index-url', index, 'from-index']);
    const script = 'import from_index; print(from_index.WORD, end="")';
    expect(await world.client('python3', ['-c', script], { PYTHONPATH: 'packages' })).toBe('installed');
    const arrived = arrivedAt('/index/');
    expect(arrived.some(({ path }) => path.endsWith('.whl'))).toBe(true);
    expect(new Set(arrived.map(({ token }) => token))).toEqual(new Set(['ours']));
  });

  it('npm installs from a private registry with the token', async () => {
    const registry = `https://${API}/npm/`;
    const args = [
      '--no-audit',
      '--no-fund',
      '--no-update-notifier',
      '--prefix',
      'app',
      '--registry',
      registry,
    ];
    await world.client('npm', ['install', ...args, 'from-registry']);
    const script = 'process.stdout.write(require("./app/node_modules/from-registry"))';
    expect(await world.client(process.execPath, ['--eval', script])).toBe('installed');
    const arrived = arrivedAt('/npm/');
    expect(arrived.map(({ path }) => path)).toEqual([
      '/npm/from-registry',
      '/npm/archives/from-registry-1.0.0.tgz',
    ]);
    expect(new Set(arrived.map(({ token }) => token))).toEqual(new Set(['ours']));
  });

  it('a host that is not listed is reached by its own TLS, without a token', async () => {
    const printed = await world.client('curl', ['--silent', '--cacert', 'api.crt', `https://${OTHER}/other`]);
    expect(printed).toBe(BODY);
    expect(arrivedAt('/other')).toMatchObject([{ host: OTHER, token: 'none' }]);
  });

  it('a client that does not trust the sidecar fails, and the log says so', async () => {
    const strict = world.client('curl', [
      '--silent',
      '--show-error',
      '--cacert',
      'api.crt',
      `https://${API}/strict`,
    ]);
    await expect(strict).rejects.toThrow(/certificate/);
    await expect.poll(() => world.rejections.length).toBeGreaterThan(0);
    expect(arrivedAt('/strict')).toEqual([]);
  });

  it.runIf(mode === 'hosts').each(VERIFIERS)(
    '%s refuses what the authority has no right to vouch for',
    async (name) => {
      const client = READERS[name] as Client;
      const call = (host: string) => client(world.deceived, `https://${host}/`, 'wgetrc-deceived');
      expect(await call(GOOD)).toBe(BODY);
      for (const host of FORGED) await expect(call(host)).rejects.toThrow();
      expect(arrivedAt('/forged/').filter(({ path }) => path !== `/forged/${GOOD}`)).toEqual([]);
    },
  );

  it('what clients trust is public', async () => {
    const listed = await world.client('sh', ['-c', 'cat /run/token-sidecar/trust/*']);
    expect(listed).not.toContain('PRIVATE KEY');
  });
});

it('the page of the clients is that of the tests', async () => {
  const page = await readFile(join(import.meta.dirname, '../../../docs/reference/interception.md'), 'utf8');
  for (const name of Object.keys({ ...READERS, ...WITHOUT_PROXY, ...GRPC })) expect(page).toContain(name);
});
