/** `check` in the container of a live sidecar: with its environment, its network and its files. */

import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { RunningCommand } from '../support/run-command.ts';
import { runHere } from '../support/run-here.ts';
import { answer, answerToken, ScriptedTokenEndpoint } from '../support/scripted-token-endpoint.ts';

/** An API that wants a token, whichever. */
async function startApi(): Promise<string> {
  const server = createServer((request, response) => {
    response.writeHead(request.headers.authorization === undefined ? 401 : 200).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function startSidecar() {
  const provider = await ScriptedTokenEndpoint.start();
  const secret = await mountSecret({ client_id: 'shop-client', client_secret: 'S3CRET' });
  const env = {
    TOKEN_SIDECAR_TOKEN_URL: provider.url,
    TOKEN_SIDECAR_UPSTREAM: await startApi(),
    TOKEN_SIDECAR_CREDENTIALS_DIR: secret.directory,
    TOKEN_SIDECAR_LISTEN: `127.0.0.1:${await freePort()}`,
    TOKEN_SIDECAR_ADMIN_LISTEN: `127.0.0.1:${await freePort()}`,
    TOKEN_SIDECAR_TERMINATION_LOG: '/nonexistent/termination-log',
  };
  const sidecar = new RunningCommand([], env);
  await sidecar.output(/"msg":"ready"/);
  const check = async (...args: string[]) => {
    const ended = await runHere(['check', ...args], env);
    expect(ended.stdout + ended.stderr).not.toMatch(/S3CRET|token-\d|shop-client/);
    return ended;
  };
  return { provider, secret, sidecar, env, check };
}

describe('beside a live sidecar', () => {
  it('all is well, and the addresses that the sidecar has are no failure', async () => {
    const { check, env } = await startSidecar();
    const { code, stdout, stderr } = await check('--probe=/health');
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(
      new RegExp(`^ok {4}proxy: listener +${env.TOKEN_SIDECAR_LISTEN}: the sidecar listens`, 'm'),
    );
    expect(stdout).toMatch(
      new RegExp(`^ok {4}admin: listener +${env.TOKEN_SIDECAR_ADMIN_LISTEN}: the sidecar`, 'm'),
    );
    expect(stdout).toMatch(/with the token: 200\n\nAll is well: \d+ steps\.\n$/);
  });

  it('--status asks the sidecar, and tries nothing', async () => {
    const { check, provider } = await startSidecar();
    const grants = provider.received.length;
    const { code, stdout } = await check('--status');
    expect(stdout).toMatch(/^ok {4}at 127.*: sidecar +version /m);
    expect(stdout).toMatch(/^ok {4}credential default: state +a token is held for /m);
    expect([code, provider.received.length]).toEqual([0, grants]);
  });

  it('--status tells of renewals that fail', async () => {
    const { check, provider, secret, sidecar } = await startSidecar();
    provider.script = answer(401, '{"error":"invalid_client"}');
    await secret.update({ client_id: 'shop-client', client_secret: 'S3CRET-2' });
    await sidecar.output(/"msg":"no token obtained"/);
    const { code, stdout } = await check('--status', '--json');
    expect(JSON.parse(stdout).findings[1]).toMatchObject({
      step: 'running_credential',
      verdict: 'warning',
      detail: expect.stringMatching(
        /^the mounted Secret of credential default has been rejected since .* invalid_client.*; requests get tokens by the previous one/,
      ),
    });
    expect(code).toBe(0);
  });

  it('--status tells of a changed file that was refused', async () => {
    const provider = await ScriptedTokenEndpoint.start();
    const { directory: dir } = await mountSecret({ client_id: 'shop-client', client_secret: 'S3CRET' });
    const directory = await mkdtemp(join(tmpdir(), 'refused-'));
    onTestFinished(() => rm(directory, { recursive: true }));
    const file = join(directory, 'token-sidecar.yaml');
    const valid = {
      listen: '127.0.0.1:0',
      admin: { listen: '127.0.0.1:0' },
      credentials: [{ name: 'default', tokenUrl: provider.url, dir }],
      routes: [{ name: 'a', upstream: await startApi() }],
    };
    await writeFile(file, JSON.stringify(valid));
    const sidecar = new RunningCommand(['--config', file, '--termination-log', '/nonexistent'], {});
    const [, admin = ''] = await sidecar.output(/"admin":"([^"]+)"/);
    await sidecar.output(/"msg":"ready"/);
    await writeFile(file, JSON.stringify({ ...valid, routes: [{ name: 'a', upstream: 'nowhere' }] }));
    await sidecar.output(/the configuration file is not valid/);

    const { stdout, code } = await runHere(['check', '--status', '--config', file, '--admin-listen', admin]);
    expect(stdout).toMatch(
      /^WARN {2}at \S+: configuration in use +the changed configuration file has been refused since .*error\[invalid_url\]: routes\[0\]\.upstream: "nowhere"/m,
    );
    expect([code, provider.received.length]).toEqual([0, 1]);
  });
});

/** Whether this user may mount in a namespace of his own. */
const mayMount = spawnSync('unshare', ['-Urm', 'true']).status === 0;

it.runIf(mayMount)(
  'warns of a file that is mounted by subPath, also below a link such as /var/run',
  async () => {
    const { directory } = await mountSecret({ client_id: 'shop', client_secret: 'S3CRET' });
    const plain = await mkdtemp(join(tmpdir(), 'sub-path-'));
    onTestFinished(() => rm(plain, { recursive: true }));
    await mkdir(join(plain, 'run'));
    await symlink('run', join(plain, 'var-run'));
    for (const name of ['client_id', 'client_secret']) await writeFile(join(plain, 'run', name), 'shop');
    const mount = `mount --bind '${directory}/client_secret' '${plain}/run/client_secret' && exec "$@"`;
    const check = new RunningCommand(
      ['check', '--offline'],
      {
        TOKEN_SIDECAR_TOKEN_URL: 'https://sso.example.com/token',
        TOKEN_SIDECAR_UPSTREAM: 'https://api.example.com',
        TOKEN_SIDECAR_CREDENTIALS_DIR: join(plain, 'var-run'),
      },
      ['unshare', '-Urm', 'sh', '-c', mount, 'sh'],
    );
    expect(await check.exited).toEqual({ code: 0, signal: null });
    expect(check.stdout).toMatch(
      /^WARN .*var-run\/client_secret is mounted by subPath: .*\n +→ mount the whole Secret/m,
    );
    expect(check.stdout).not.toMatch(/client_id is mounted/);
  },
);

it('ends within its time, whoever does not answer', async () => {
  const provider = await ScriptedTokenEndpoint.start(() => undefined);
  const { directory } = await mountSecret({ client_id: 'shop', client_secret: 'S3CRET' });
  const { code, stdout } = await runHere(['check', '--check-timeout=1s'], {
    TOKEN_SIDECAR_TOKEN_URL: provider.url,
    TOKEN_SIDECAR_UPSTREAM: await startApi(),
    TOKEN_SIDECAR_CREDENTIALS_DIR: directory,
    TOKEN_SIDECAR_LISTEN: '127.0.0.1:0',
    TOKEN_SIDECAR_ADMIN_LISTEN: '127.0.0.1:0',
  });
  expect(stdout).toMatch(/^FAIL {2}time +the time for all steps was up\n +→ look at the steps that/m);
  expect(code).toBe(69);
});

describe('flags that do not go together', () => {
  it.each([
    [['--offline', '--status'], '--offline: expected nothing beside --status'],
    [['--probe=/a', '--offline'], '--probe: expected nothing beside --offline'],
    [['--probe=a'], '--probe: "a": expected paths by commas, each as /path or ROUTE=/path'],
    [
      ['--probe=defualt=/a'],
      '--probe: "defualt": expected the name of a route: default; did you mean "default"?',
    ],
    [['--check-timeout=1h'], '--check-timeout: "1h": expected a duration from 1s to 10m'],
  ])('%j', async (args, expected) => {
    const { code, stderr } = await runHere(['check', ...args], {
      TOKEN_SIDECAR_TOKEN_URL: 'https://sso.example.com/token',
      TOKEN_SIDECAR_UPSTREAM: 'https://api.example.com',
    });
    expect(stderr).toContain(expected);
    expect(code).toBe(78);
  });
});

it('calls a usual mistake by its name', async () => {
  const provider = await ScriptedTokenEndpoint.start(answerToken());
  const { directory } = await mountSecret({ client_id: 'shop', client_secret: 'S3CRET' });
  const env = {
    TOKEN_SIDECAR_AUTH_URL: `${new URL(provider.url).origin}/realms/shop`,
    TOKEN_SIDECAR_UPSTREAM: await startApi(),
    TOKEN_SIDECAR_CREDENTIALS_DIR: directory,
    TOKEN_SIDECAR_LISTEN: '127.0.0.1:0',
    TOKEN_SIDECAR_ADMIN_LISTEN: '127.0.0.1:0',
  };
  provider.script = answer(404, '{"error":"Realm does not exist"}');
  const { code, stdout } = await runHere(['check'], env);
  expect(stdout).toMatch(
    /realms\/shop\/realms\/dx\/.*\n +→ the base URL ends before \/realms: set it to http:\S+, and realm to shop/,
  );
  expect(code).toBe(69);
});

it('--json says what is wrong with a configuration that cannot be used, without its values', async () => {
  const { code, stdout, stderr } = await runHere(['check', '--json', '--upstream', 'ftp://S3CRET'], {});

  expect([code, stderr]).toEqual([78, '']);
  expect(stdout).not.toContain('S3CRET');
  expect(JSON.parse(stdout).findings).toContainEqual({
    step: 'configuration',
    what: 'configuration',
    verdict: 'failure',
    failure: 'configuration',
    detail: expect.stringMatching(/^\w+: --upstream: expected /),
    remedy: expect.any(String),
  });
});
