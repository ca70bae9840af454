import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { BLOCKS, ROOT } from './blocks.ts';

/** The text of the block of a page that has these words. */
function block(file: string, words: string): string {
  const found = BLOCKS.filter((one) => one.file === file && one.text.includes(words));
  expect(found, `one block of ${file} with ${words}`).toHaveLength(1);
  return found[0]?.text ?? '';
}

/** A shell with a network of its own, so that the ports of the pages are free. */
class Shell {
  readonly #process: ChildProcess;
  readonly #exited: Promise<void>;
  output = '';
  #wake: (() => void)[] = [];

  constructor(script: string, cwd = ROOT) {
    const path = `${join(ROOT, 'node_modules/.bin')}:${process.env['PATH']}`;
    const own = `set -eu; ip link set lo up; token-sidecar() { node ${ROOT}/src/main.ts "$@"; }; ${script}`;
    this.#process = spawn(
      'unshare',
      ['--net', '--map-root-user', '--kill-child', '--pid', '--fork', 'bash', '-c', own],
      {
        cwd,
        env: { PATH: path, HOME: tmpdir(), NO_COLOR: '1' },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text;
        for (const wake of this.#wake.splice(0)) wake();
      });
    }
    this.#exited = new Promise((resolve) => {
      this.#process.once('close', () => {
        resolve();
        for (const wake of this.#wake.splice(0)) wake();
      });
    });
    onTestFinished(async () => {
      this.#process.kill('SIGKILL');
      await this.#exited;
    });
  }

  /** Waits for its end, and gives what it has printed. */
  async result(): Promise<string> {
    await this.#exited;
    if (this.#process.exitCode !== 0)
      throw new Error(`ended with ${this.#process.exitCode}:\n${this.output}`);
    return this.output;
  }
}

/** Waits until something listens. */
const listening = (port: number): string =>
  `until curl --silent --output /dev/null --max-time 1 http://127.0.0.1:${port}/; do sleep 0.1; done`;

it('README: the demo answers as it says', async () => {
  const start = block('README.md', 'npm ci && npm start').replace('npm ci && ', '');
  const calls = block('README.md', '/whoami');
  const shell = new Shell(`(${start}) > /dev/null & ${listening(15081)}
    until curl --silent --fail http://127.0.0.1:15081/readyz > /dev/null; do sleep 0.1; done
    ${calls}`);
  const said = await shell.result();
  expect(said).toContain('"client": "demo-app"');
  expect(said).toMatch(/HTTP\/1\.1 401/);
});

it('with your own app: each way in prints what the page says', async () => {
  const page = 'docs/how-to/your-own-app.md';
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-docs-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const lines = (words: string): string => block(page, words).replaceAll('/tmp/', `${directory}/`).trim();
  /** Waits until something listens, whatever it speaks. */
  const open = (port: number): string =>
    `until (exec 3<>/dev/tcp/127.0.0.1/${port}) 2> /dev/null; do sleep 0.1; done`;
  const serve = (words: string, port: number): string => `(${lines(words)}) & ${open(port)}`;
  await writeFile(join(directory, 'exchange.yaml'), lines('subjectTokenFrom: request'));
  const [, client = '', proxy = ''] = /^(.* check)\n(.* proxy)$/.exec(lines('-- check')) ?? [];
  /** Runs the sidecar until the app has its answer. */
  const way = (sidecar: string, app: string): string => `
    (${sidecar}) > /dev/null & pid=$!
    until curl --silent --fail http://127.0.0.1:15081/readyz > /dev/null; do sleep 0.1; done
    ${lines(app)}
    curl --silent --request POST http://127.0.0.1:15081/quitquitquit > /dev/null; wait $pid`;
  const shell = new Shell(`
    ${lines('> /tmp/shop/client_id')}
    ${serve('listen(8080', 8080)}
    ${serve('issuer --clients-file', 15091)}
    (
      ${lines('export TOKEN_SIDECAR_TOKEN_URL')}
      ${client}
      ${way(proxy, 'curl http://127.0.0.1:15080/orders')}
      ${lines('openssl req').replace(/^npx[\s\S]*$/m, (api) => `(${api}) &`)}
      ${open(8443)}
      ${way(lines('TOKEN_SIDECAR_HOSTS'), 'HTTPS_PROXY')}
      ${serve('listen(50051', 50051)}
      ${way(lines('TOKEN_SIDECAR_PROTOCOL=h2c'), '--http2-prior-knowledge')}
    )
    ${serve('listen(9090', 9090)}
    ${way(lines('--config /tmp/exchange.yaml'), 'token-of-alice')}`);
  const said = await shell.result();
  expect(said).not.toContain('FAIL');
  expect(said.match(/^\/orders Bearer eyJ/gm)).toHaveLength(2);
  expect(said).toMatch(/^\/shop\.Orders\/Get Bearer eyJ/m);
  expect(said).toMatch(/^\/orders Bearer exchanged-for-token-of-alice$/m);
});

it('the issuer answers a grant as its page says', async () => {
  const lines = block('docs/reference/issuer.md', 'token-sidecar issuer --clients-file clients.yaml');
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-docs-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  await writeFile(join(directory, 'clients.yaml'), 'clients: [{ clientId: shop, clientSecret: s3cret }]');
  const own = lines.replace(/^token-sidecar issuer .*$/m, `$& &\n${listening(15090)}`);
  const said = await new Shell(own, directory).result();
  const shown = JSON.parse(block('docs/reference/issuer.md', '"access_token": "eyJ…"'));
  // Beside it on its line may stand how far curl has come.
  const answered = JSON.parse(/\{[^{}]*"access_token"[^{}]*\}/.exec(said)?.[0] ?? said);
  expect(Object.keys(answered).sort()).toEqual(Object.keys(shown).sort());
});

it('a configuration is checked without a network', async () => {
  const lines = block('docs/how-to/operate.md', 'check --offline');
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-docs-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const secret = join(directory, 'secret');
  await writeFile(
    join(directory, 'token-sidecar.yaml'),
    JSON.stringify({
      credentials: [{ name: 'default', tokenUrl: 'https://sso.example.com/token', dir: secret }],
      routes: [{ name: 'api', upstream: 'https://api.example.com' }],
    }),
  );
  const made = `mkdir ${secret}; printf shop > ${secret}/client_id; printf s3cret > ${secret}/client_secret`;
  const said = await new Shell(`${made}\n${lines}`, directory).result();
  expect(said).toContain('ok    configuration');
});
