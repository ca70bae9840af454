import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync } from 'node:fs';
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { below } from '../check/examined.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { MAIN, RunningCommand, runToEnd, SURROUNDINGS } from '../support/run-command.ts';
import { runHere } from '../support/run-here.ts';
import { answer, answerToken, ScriptedTokenEndpoint } from '../support/scripted-token-endpoint.ts';
import { selfSigned } from '../wire/certificate.ts';

/** An upstream that accepts connections; nothing is asked of it here. */
async function openPort(): Promise<number> {
  const server = createServer((socket) => socket.on('error', () => undefined).end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

async function environment(provider: ScriptedTokenEndpoint): Promise<Record<string, string>> {
  const secret = await mountSecret({ client_id: 'shop', client_secret: 'S3CRET' });
  return {
    TOKEN_SIDECAR_TOKEN_URL: provider.url,
    TOKEN_SIDECAR_UPSTREAM: `http://127.0.0.1:${await openPort()}`,
    TOKEN_SIDECAR_CREDENTIALS_DIR: secret.directory,
    TOKEN_SIDECAR_LISTEN: '127.0.0.1:0',
    TOKEN_SIDECAR_ADMIN_LISTEN: '127.0.0.1:0',
  };
}

const COMMANDS = ['proxy', 'gateway', 'issuer', 'injector', 'check', 'wait', 'redirect', 'demo'];

describe('help and version', () => {
  it('--help lists the commands', async () => {
    const { code, stdout } = await runHere(['--help']);
    expect(code).toBe(0);
    for (const command of COMMANDS) expect(stdout).toContain(`  ${command} `);
  });

  it.each(COMMANDS)('%s --help lists its flags with their variables', async (command) => {
    const { code, stdout } = await runHere([command, '--help']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/--[a-z-]+ [A-Z:]+\n.*\(TOKEN_SIDECAR_/);
  });

  it.each([
    ['wait', '-h'],
    ['help', 'wait'],
    ['wait', '--help'],
  ])('%s %s describes the command, with examples', async (...args) => {
    const { code, stdout } = await runHere(args);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^Block until[\s\S]*\n {2}token-sidecar wait && exec .\/app\n[\s\S]*--wait-timeout DURATION/,
    );
  });

  it.each([
    ['help', 'help'],
    ['help', 'completion'],
    ['completion', '--help'],
  ])('%s %s describes what the program does itself', async (...args) => {
    const { code, stdout } = await runHere(args);
    expect(code).toBe(0);
    expect(stdout).toMatch(/\.\n\nUsage: token-sidecar (?:help \[COMMAND\]|completion SHELL)\n\nExamples:\n/);
  });

  it('takes help for a command that there is not as a mistake', async () => {
    expect(await runHere(['help', 'chekc'])).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('did you mean "check"?'),
    });
  });

  it('--version says the version of the package, the revision and Node', async () => {
    const said = /^token-sidecar (\S+) \(revision unknown, Node (\S+)\)\n$/;
    for (const args of [['--version'], ['-V'], ['issuer', '--version']]) {
      const { code, stdout } = await runHere(args);
      expect([code, ...(said.exec(stdout) ?? []).slice(1)]).toEqual([
        0,
        manifest.version,
        process.versions.node,
      ]);
    }
  });
});

describe('exit status', () => {
  it.runIf(existsSync('/dev/full'))(
    '70 for output that cannot be written, and 0 for a reader that has left',
    async () => {
      const full = openSync('/dev/full', 'w');
      onTestFinished(() => closeSync(full));
      const program = (stdout: number | 'pipe') =>
        spawn(process.execPath, [MAIN, '--help'], { env: SURROUNDINGS, stdio: ['ignore', stdout, 'pipe'] });
      const failing = program(full);
      let said = '';
      failing.stderr?.on('data', (chunk) => {
        said += chunk;
      });
      expect((await once(failing, 'close'))[0]).toBe(70);
      expect(said).toContain('standard output: ENOSPC');
      const left = program('pipe');
      left.stdout?.destroy();
      expect((await once(left, 'close'))[0]).toBe(0);
    },
  );

  it('64 for a command or flag that there is not, with the nearest one there is', async () => {
    expect(await runHere(['prox'])).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('did you mean "proxy"?'),
    });
    expect(await runHere(['--lisen=x'])).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('did you mean "--listen"?'),
    });
  });

  it.each(['proxy', 'check', 'wait', 'demo'])('64 for a word of %s that is no flag', async (command) => {
    expect(await runHere([command, 'token-sidecar.yaml'])).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('unexpected argument token-sidecar.yaml'),
    });
  });

  it('78 for a bad configuration, with all that is wrong', async () => {
    const { code, stderr } = await runToEnd(['proxy', '--listen=nowhere'], {
      TOKEN_SIDECAR_AUTH_URL: 'ftp://x',
    });
    expect(code).toBe(78);
    expect(stderr).toContain('--listen: "nowhere"');
    expect(stderr).toContain('TOKEN_SIDECAR_AUTH_URL: "ftp://x"');
    expect(stderr).toContain('TOKEN_SIDECAR_UPSTREAM: expected');
  });

  it('78 for an address that is taken, and nothing is left running', async () => {
    const provider = await ScriptedTokenEndpoint.start();
    const taken = await openPort();
    const env = { ...(await environment(provider)), TOKEN_SIDECAR_LISTEN: `127.0.0.1:${taken}` };
    const { code, stderr } = await runToEnd(['proxy'], env);
    expect(code).toBe(78);
    expect(stderr).toMatch(
      new RegExp(
        `address_in_use\\]: TOKEN_SIDECAR_LISTEN: "127.0.0.1:${taken}": .*\\(process ${process.pid}\\) listens there`,
      ),
    );
  });

  it('names every address that is taken, by what named it, and nothing that is free', async () => {
    const provider = await ScriptedTokenEndpoint.start();
    const [taken, alsoTaken] = [await openPort(), await openPort()];
    const { TOKEN_SIDECAR_LISTEN: _, TOKEN_SIDECAR_ADMIN_LISTEN: __, ...env } = await environment(provider);
    const config = join(await mkdtemp(join(tmpdir(), 'taken-')), 'config.yaml');
    onTestFinished(() => rm(dirname(config), { recursive: true }));
    await writeFile(config, `admin: { listen: "127.0.0.1:${alsoTaken}" }\n`);
    const both = await runHere(['proxy', `--config=${config}`, `--listen=127.0.0.1:${taken}`], env);
    expect(both.code).toBe(78);
    expect(both.stderr).toContain(`: --listen: "127.0.0.1:${taken}"`);
    expect(both.stderr).toContain(`: admin.listen: "127.0.0.1:${alsoTaken}"`);
    const one = await runHere(['proxy', `--config=${config}`, '--listen=127.0.0.1:0'], env);
    expect(one.stderr).not.toContain('--listen');
    expect(one.stderr).toContain(` --> ${config}:1:18\n`);
    expect(one.stderr).toContain('1 problem.');
  });

  it.each(['issuer', 'injector'])('%s names both of its addresses where both are taken', async (command) => {
    const directory = await mkdtemp(join(tmpdir(), 'taken-'));
    onTestFinished(() => rm(directory, { recursive: true }));
    const clients = join(directory, 'clients.yaml');
    await writeFile(clients, 'clients: [{ clientId: shop, clientSecret: s3cret }]');
    const { cert, key } = selfSigned('localhost');
    const [certFile, keyFile] = [join(directory, 'tls.crt'), join(directory, 'tls.key')];
    await Promise.all([writeFile(certFile, cert), writeFile(keyFile, key)]);
    const own = {
      issuer: [`--clients-file=${clients}`],
      injector: [`--tls-cert-file=${certFile}`, `--tls-key-file=${keyFile}`, '--kubernetes-api=false'],
    }[command as 'issuer' | 'injector'];
    const [listen, admin] = [await openPort(), await openPort()];
    const addresses = [`--listen=127.0.0.1:${listen}`, `--admin-listen=127.0.0.1:${admin}`];
    const { code, stderr } = await runHere([command, ...own, ...addresses]);
    expect(stderr).toContain(`address_in_use]: --listen: "127.0.0.1:${listen}"`);
    expect(stderr).toContain(`address_in_use]: --admin-listen: "127.0.0.1:${admin}"`);
    expect(code).toBe(78);
  });

  it('a second demo says that one is running, once for all addresses that it has', async () => {
    const names = ['listen', 'admin-listen', 'issuer-listen', 'issuer-admin-listen', 'api-listen'];
    const own = names.map((name) => `--${name}=127.0.0.1:0`);
    const first = new RunningCommand(['demo', '--token-lifetime=2s', ...own]);
    const [, port] = await first.output(/http:\/\/127.0.0.1:(\d+)\/whoami /);
    const [, adminPort] = await first.output(/http:\/\/127.0.0.1:(\d+)\/readyz/);
    const taken = [`--listen=127.0.0.1:${port}`, `--admin-listen=127.0.0.1:${adminPort}`];
    const second = await runToEnd(['demo', ...own.slice(2), ...taken]);
    expect(second.code).toBe(78);
    expect(second.stderr).toMatch(/^token-sidecar: it cannot listen$/m);
    expect(second.stderr.match(/A demo is running already/g)).toHaveLength(1);
    expect(second.stderr).toContain(
      `A demo is running already: end process ${first.process.pid} by Ctrl-C, or choose other ports: --listen, --admin-listen.`,
    );
  });
});

describe('names that every object has are no names of ours', () => {
  it.each(['--constructor', '--constructor=x'])('%s is no flag', async (flag) => {
    expect(await runHere([flag])).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('unknown flag --constructor'),
    });
  });

  it('constructor is a command no more than a host', async () => {
    expect(await runHere(['constructor'])).toMatchObject({ code: 64 });
    const waited = await runHere(['wait', '--admin-listen=constructor:1', '--wait-timeout=1ms']);
    expect(waited).toMatchObject({
      code: 69,
      stderr: expect.stringContaining('constructor:1 was not ready'),
    });
  });
});

describe('a file that is none', () => {
  async function odd(kind: 'pipe' | 'device' | 'huge'): Promise<string> {
    if (kind === 'device') return '/dev/zero';
    const directory = await mkdtemp(join(tmpdir(), 'odd-file-'));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const path = join(directory, 'file');
    if (kind === 'pipe') execFileSync('mkfifo', [path]);
    else await writeFile(path, '').then(() => truncate(path, 2 ** 33));
    return path;
  }

  it.each([
    ['pipe', 'no regular file'],
    ['device', 'no regular file'],
    ['huge', 'larger than 1048576 bytes'],
  ] as const)('is refused as configuration and as certificate: a %s', async (kind, why) => {
    const path = await odd(kind);
    const asConfiguration = await runHere(['check', `--config=${path}`]);
    expect(asConfiguration).toMatchObject({ code: 78, stderr: expect.stringContaining(why) });

    const directory = await mkdtemp(join(tmpdir(), 'odd-file-'));
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const config = join(directory, 'config.yaml');
    const tls = `tls: { caFile: ${path}, certFile: ${path}, keyFile: ${path} }`;
    await writeFile(
      config,
      `credentials: [{ name: a, tokenUrl: "http://127.0.0.1/t", tls: { caFile: ${path} } }]\n` +
        `routes: [{ name: a, upstream: "https://127.0.0.1", credential: a, ${tls} }]\n`,
    );
    const { code, stderr } = await runHere(['check', `--config=${config}`]);
    expect(code).toBe(78);
    for (const key of ['routes[0].tls.caFile', 'routes[0].tls.keyFile', 'credentials[0].tls.caFile']) {
      expect(stderr.split('\n').find((line) => line.includes(key))).toContain(why);
    }
  });

  it('is read no further than manifests can be long', async () => {
    const { code, stderr } = await runHere(['inject', '-f', '/dev/zero']);
    expect([code, stderr]).toEqual([78, expect.stringContaining('larger than 67108864 bytes')]);
  });
});

describe('commands that do not serve end by the first signal', () => {
  it('check, while the provider does not answer', async () => {
    const provider = await ScriptedTokenEndpoint.start(() => undefined);
    const check = new RunningCommand(['check'], await environment(provider));
    await provider.requests(1);
    check.process.kill('SIGINT');
    expect(await check.exited).toEqual({ code: null, signal: 'SIGINT' });
  });

  it('inject, while its input goes on', async () => {
    const inject = new RunningCommand(['inject']);
    await new Promise((resolve) => inject.process.stdin?.write('#'.repeat(2 ** 20), resolve));
    inject.process.kill('SIGINT');
    expect(await inject.exited).toEqual({ code: null, signal: 'SIGINT' });
  });
});

it('the demo ends when nobody watches it any more', async () => {
  const listeners = ['listen', 'admin-listen', 'issuer-listen', 'issuer-admin-listen', 'api-listen'];
  const flags = listeners.map((flag) => `--${flag}=127.0.0.1:0`);
  const demo = new RunningCommand(['demo', '--token-lifetime=2s', ...flags]);
  await demo.output(/Ctrl-C ends/);
  demo.process.stdout?.destroy();
  expect(await demo.exited).toEqual({ code: 0, signal: null });
});

describe('the sidecar as a process', () => {
  async function startSidecar(upstream?: Server) {
    const provider = await ScriptedTokenEndpoint.start();
    const to = upstream && {
      TOKEN_SIDECAR_UPSTREAM: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
    };
    const sidecar = new RunningCommand([], { ...(await environment(provider)), ...to });
    const [, port] = await sidecar.output(/"proxy":"127.0.0.1:(\d+)"/);
    const [, admin] = await sidecar.output(/"admin":"([^"]+)"/);
    return { provider, sidecar, admin: `http://${admin}`, proxy: Number(port) };
  }

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'says when it is ready and after how long, and ends with 0 on %s',
    async (signal) => {
      const { sidecar } = await startSidecar();
      await sidecar.output(/"sinceStartMs":\d+,"tokenRoundTripMs":\d+,"ownMs":\d+,"msg":"ready"/);
      sidecar.process.kill(signal);
      expect(await sidecar.exited).toEqual({ code: 0, signal: null });
      expect(sidecar.stdout).toContain('"msg":"stopped"');
    },
  );

  it('drains on SIGHUP too, however many come', async () => {
    // What is in flight keeps it draining for as long as the signals come.
    const upstream = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void upstream.close());
    await once(upstream, 'listening');
    const { sidecar, admin, proxy } = await startSidecar(upstream);
    const request = connect(proxy)
      .on('error', () => undefined)
      .resume();
    request.write('GET / HTTP/1.1\r\nhost: api\r\nconnection: close\r\n\r\n');
    const [forwarded] = (await once(upstream, 'connection')) as [Socket];
    sidecar.process.kill('SIGHUP');
    await sidecar.output(/"msg":"draining"/);
    for (let n = 0; n < 3; n++) {
      sidecar.process.kill('SIGHUP');
      expect((await fetch(`${admin}/livez`)).status).toBe(200);
    }
    forwarded.end('HTTP/1.1 204 No Content\r\n\r\n');
    expect(await sidecar.exited).toEqual({ code: 0, signal: null });
    expect(sidecar.stdout).toContain('"msg":"stopped"');
  });

  it('opens no debugger on SIGUSR1', async () => {
    const { sidecar, admin } = await startSidecar();
    await sidecar.output(/"msg":"ready"/);
    sidecar.process.kill('SIGUSR1');
    for (let n = 0; n < 5; n++) expect((await fetch(`${admin}/livez`)).status).toBe(200);
    sidecar.process.kill('SIGTERM');
    expect(await sidecar.exited).toEqual({ code: 0, signal: null });
    expect(sidecar.stderr).toBe('');
  });

  it('ends with 0 on POST /quitquitquit', async () => {
    const { sidecar, admin } = await startSidecar();
    const response = await fetch(`${admin}/quitquitquit`, { method: 'POST' });
    expect([response.status, await response.text()]).toEqual([200, 'stopping\n']);
    expect(await sidecar.exited).toEqual({ code: 0, signal: null });
  });

  it('a second signal ends it at once, whatever is still open', async () => {
    const { sidecar, proxy } = await startSidecar();
    const open = connect(proxy);
    open.on('error', () => undefined);
    await new Promise<void>((resolve) => open.once('connect', resolve));
    sidecar.process.kill('SIGTERM');
    await sidecar.output(/"msg":"draining"/);
    sidecar.process.kill('SIGTERM');
    expect(await sidecar.exited).toEqual({ code: 0, signal: null });
    expect(sidecar.stdout).not.toContain('"msg":"stopped"');
    open.destroy();
  });

  it('prints no secret and no token, at the most talkative level', async () => {
    const provider = await ScriptedTokenEndpoint.start();
    const env = { ...(await environment(provider)), TOKEN_SIDECAR_LOG_LEVEL: 'trace' };
    const sidecar = new RunningCommand([], env);
    await sidecar.output(/"msg":"ready"/);
    sidecar.process.kill('SIGTERM');
    await sidecar.exited;
    expect(sidecar.stdout + sidecar.stderr).not.toMatch(/S3CRET|token-1|shop/);
  });
});

describe('check', () => {
  it('looks at files alone where it is offline, and speaks JSON', async () => {
    const provider = await ScriptedTokenEndpoint.start();
    const env = await environment(provider);
    const { code, stdout } = await runHere(['check', '--offline', '--json'], env);
    expect(JSON.parse(stdout)).toEqual({
      findings: [
        {
          step: 'configuration',
          what: 'configuration',
          verdict: 'ok',
          detail: '1 credential, 1 route',
        },
        {
          step: 'mounted_secret',
          subject: 'credential default',
          what: 'credential default: mounted Secret',
          verdict: 'ok',
          detail: env['TOKEN_SIDECAR_CREDENTIALS_DIR'],
        },
        {
          step: 'token_url',
          subject: 'credential default',
          what: 'credential default: token endpoint',
          verdict: 'ok',
          detail: `POST ${provider.url}, grant client_credentials, client by client_secret_basic`,
        },
      ],
    });
    expect([code, provider.received.length]).toEqual([0, 0]);
    const missing = await runHere(['check', '--offline', '--json'], {
      ...env,
      TOKEN_SIDECAR_CREDENTIALS_DIR: '/nonexistent',
    });
    expect(missing.code).toBe(78);
    expect(JSON.parse(missing.stdout).findings[1]).toMatchObject({
      verdict: 'failure',
      failure: 'configuration',
    });
  });

  it('says that all is well, and ends with 0', async () => {
    const provider = await ScriptedTokenEndpoint.start();
    const { code, stdout } = await runHere(['check'], await environment(provider));
    expect(stdout).toMatch(/^ok {4}configuration .*1 credential/m);
    expect(below('credential default', stdout)).toMatch(
      /^ok {4}token +granted by 127.0.0.1:\d+, lives 300 s/m,
    );
    expect(below('route default', stdout)).toMatch(/^ok {4}upstream/m);
    expect(code).toBe(0);
  });

  it('ends with 77 when the credentials are rejected', async () => {
    const provider = await ScriptedTokenEndpoint.start(answer(401, '{"error":"invalid_client"}'));
    const { code, stdout } = await runHere(['check'], await environment(provider));
    expect(below('credential default', stdout)).toMatch(
      /^FAIL {2}token +http:.* rejected the client \(status 401 invalid_client\)\n +→ compare the Secret/m,
    );
    expect(code).toBe(77);
  });

  it('ends with 69 when the provider or an upstream cannot be reached', async () => {
    const provider = await ScriptedTokenEndpoint.start(answerToken());
    const env = await environment(provider);
    const upstreamAway = await runHere(['check'], { ...env, TOKEN_SIDECAR_UPSTREAM: 'http://127.0.0.1:1' });
    expect(below('route default', upstreamAway.stdout)).toMatch(
      /^FAIL {2}upstream +http:\/\/127.0.0.1:1: ECONNREFUSED\n +→ check host and port/m,
    );
    expect(upstreamAway.code).toBe(69);
    const providerAway = await runHere(['check'], {
      ...env,
      TOKEN_SIDECAR_TOKEN_URL: 'http://127.0.0.1:1/token',
    });
    expect(providerAway.code).toBe(69);
  });

  it('ends with 78 when the Secret is not mounted', async () => {
    const provider = await ScriptedTokenEndpoint.start();
    const env = { ...(await environment(provider)), TOKEN_SIDECAR_CREDENTIALS_DIR: '/nonexistent' };
    const { code, stdout } = await runHere(['check'], env);
    expect(below('credential default', stdout)).toMatch(
      /^FAIL {2}mounted Secret +\/nonexistent\/client_id does not exist/m,
    );
    expect(code).toBe(78);
  });

  it('warns of a credential that is not required, and ends with what the others lead to', async () => {
    const provider = await ScriptedTokenEndpoint.start();
    const { directory: dir } = await mountSecret({ client_id: 'shop', client_secret: 'S3CRET' });
    const upstream = `http://127.0.0.1:${await openPort()}`;
    const config = join(await mkdtemp(join(tmpdir(), 'optional-')), 'config.yaml');
    onTestFinished(() => rm(dirname(config), { recursive: true }));
    async function check(requiredUrl: string) {
      await writeFile(
        config,
        JSON.stringify({
          credentials: [
            { name: 'shop', tokenUrl: requiredUrl, dir },
            { name: 'mail', tokenUrl: 'http://127.0.0.1:1/token', dir, required: false },
            { name: 'fax', tokenUrl: provider.url, dir: '/nonexistent', required: false },
          ],
          routes: ['shop', 'mail', 'fax'].map((credential) => ({
            name: credential,
            match: { pathPrefix: `/${credential}` },
            upstream,
            credential,
          })),
        }),
      );
      return await runHere(['check', `--config=${config}`]);
    }
    const { code, stdout, stderr } = await check(provider.url);
    expect(stderr).toBe('');
    expect(below('credential shop', stdout)).toMatch(/^ok {4}token/m);
    expect(below('credential mail', stdout)).toMatch(
      /^WARN {2}provider +http:\/\/127.0.0.1:1: ECONNREFUSED\n +→ check host/m,
    );
    expect(below('credential fax', stdout)).toMatch(
      /^WARN {2}mounted Secret +\/nonexistent\/client_id does not exist/m,
    );
    expect(stdout).not.toContain('FAIL');
    expect(code).toBe(0);

    const rejecting = await ScriptedTokenEndpoint.start(answer(401, '{"error":"invalid_client"}'));
    expect(await check(rejecting.url)).toMatchObject({ code: 77 });
  });

  it('prints what an issuer says of itself, and warns where it does not offer what the client does', async () => {
    const token = answerToken();
    const provider = await ScriptedTokenEndpoint.start((response, request) => {
      if (request.method === 'POST') return token(response, request);
      const metadata = {
        issuer: issuerUrl,
        token_endpoint: provider.url,
        token_endpoint_auth_methods_supported: ['client_secret_basic', 'private_key_jwt'],
      };
      answer(200, JSON.stringify(metadata))(response, request);
    });
    const issuerUrl = new URL('/realms/dx', provider.url).href;
    const { directory: dir } = await mountSecret({ client_id: 'shop', client_secret: 'S3CRET' });
    const upstream = `http://127.0.0.1:${await openPort()}`;
    const config = join(await mkdtemp(join(tmpdir(), 'issuer-')), 'config.json');
    onTestFinished(() => rm(dirname(config), { recursive: true }));
    const credentials = [
      { name: 'default', issuerUrl, dir },
      { name: 'post', issuerUrl, dir, clientAuth: 'client_secret_post' },
    ];
    await writeFile(config, JSON.stringify({ credentials, routes: [{ name: 'a', upstream }] }));
    const { code, stdout } = await runHere(['check', `--config=${config}`]);
    expect(below('credential default', stdout)).toMatch(
      /^ok {4}issuer +http:\S+\/realms\/dx\/.well-known\/openid-configuration names http:\S+\/token$/m,
    );
    expect(below('credential default', stdout)).toMatch(
      /^ok {4}client authentication +client_secret_basic is offered$/m,
    );
    expect(below('credential post', stdout)).toMatch(
      /^WARN {2}client authentication +client_secret_post is not among those that the issuer offers: client_secret_basic, private_key_jwt\n/m,
    );
    expect(code).toBe(0);
  });
});

describe('wait', () => {
  it('returns 0 once the sidecar is ready', async () => {
    const provider = await ScriptedTokenEndpoint.start();
    const sidecar = new RunningCommand([], await environment(provider));
    const [, admin] = await sidecar.output(/"admin":"([^"]+)"/);
    expect(await runHere(['wait', `--admin-listen=${admin}`])).toMatchObject({ code: 0 });
  });

  it('returns 69 when it is not ready in time, with what it last saw', async () => {
    const { code, stderr } = await runHere(['wait', '--admin-listen=127.0.0.1:1', '--wait-timeout=200ms']);
    expect(code).toBe(69);
    expect(stderr).toContain('the sidecar at 127.0.0.1:1 was not ready within 200 ms: ECONNREFUSED');
  });
});
