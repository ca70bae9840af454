import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { mountSecret } from '../support/kubelet-secret.ts';
import { RunningCommand } from '../support/run-command.ts';
import { runHere } from '../support/run-here.ts';
import { answer, answerToken, ScriptedTokenEndpoint } from '../support/scripted-token-endpoint.ts';

/** The file that the kubelet mounts. */
async function terminationLog(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'termination-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const file = join(directory, 'termination-log');
  await writeFile(file, '');
  return file;
}

async function start(tokenUrl: string, files: Readonly<Record<string, string>>) {
  const file = await terminationLog();
  const secret = await mountSecret(files);
  const sidecar = new RunningCommand(['proxy'], {
    TOKEN_SIDECAR_TOKEN_URL: tokenUrl,
    TOKEN_SIDECAR_UPSTREAM: 'http://127.0.0.1:9',
    TOKEN_SIDECAR_CREDENTIALS_DIR: secret.directory,
    TOKEN_SIDECAR_LISTEN: '127.0.0.1:0',
    TOKEN_SIDECAR_ADMIN_LISTEN: '127.0.0.1:0',
    TOKEN_SIDECAR_TERMINATION_LOG: file,
  });
  return { sidecar, secret, message: () => readFile(file, 'utf8') };
}

const SECRET = { client_id: 'shop', client_secret: 'S3CRET' };
/** Nothing listens there. */
const NOWHERE = 'http://127.0.0.1:9/realms/dx/protocol/openid-connect/token';

describe('a sidecar that ends without ever having had a token', () => {
  it('ends with 69 where the provider cannot be reached, and names its URL', async () => {
    const { sidecar, message } = await start(NOWHERE, SECRET);
    await sidecar.output(/"tokenUrl":"[^"]+".*no token obtained/);
    sidecar.process.kill('SIGTERM');
    expect(await sidecar.exited).toMatchObject({ code: 69 });
    expect(await message()).toMatch(
      /^credential default has had no token since \S+ \S+ UTC \(\d+ s\): \S+ gave no token \(ECONNREFUSED\); check host and port, and NetworkPolicies$/,
    );
    expect(await message()).toContain(NOWHERE);
  });

  it('ends with 77 where the client is rejected, without a word of the secret', async () => {
    const provider = await ScriptedTokenEndpoint.start(
      answer(401, '{"error":"invalid_client","error_description":"no shop with S3CRET"}'),
    );
    const { sidecar, message, secret } = await start(provider.url, SECRET);
    await sidecar.output(/no token obtained/);
    sidecar.process.kill('SIGTERM');
    expect(await sidecar.exited).toMatchObject({ code: 77 });
    const left = await message();
    expect(left).toContain(`${provider.url} rejected the client (status 401 invalid_client`);
    expect(left).toContain(secret.directory);
    expect(left + sidecar.stdout).not.toContain('S3CRET');
  });

  it('ends with 78 where the mounted Secret has not what it needs', async () => {
    const { sidecar, message, secret } = await start(NOWHERE, { client_id: 'shop' });
    await sidecar.output(/listening/);
    sidecar.process.kill('SIGTERM');
    expect(await sidecar.exited).toMatchObject({ code: 78 });
    expect(await message()).toContain(`no token was asked of ${NOWHERE}, because ${secret.directory}`);
  });

  it('ends with 78 for a configuration that is wrong, and leaves what is printed', async () => {
    const file = await terminationLog();
    const { code } = await runHere(['proxy', '--listen=nowhere', `--termination-log=${file}`]);
    expect(code).toBe(78);
    expect(await readFile(file, 'utf8')).toContain('--listen: "nowhere"');
  });

  it('needs no file to leave a message in, and makes none', async () => {
    const file = await terminationLog();
    await rm(file);
    const { code } = await runHere(['proxy', '--listen=nowhere', `--termination-log=${file}`]);
    expect(code).toBe(78);
    await expect(readFile(file)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('ends with 0 when the app says that it is done', async () => {
    const { sidecar, message } = await start(NOWHERE, SECRET);
    const [, port] = await sidecar.output(/"admin":"127\.0\.0\.1:(\d+)"/);
    await sidecar.output(/no token obtained/);
    await fetch(`http://127.0.0.1:${port}/quitquitquit`, { method: 'POST' });
    expect(await sidecar.exited).toMatchObject({ code: 0 });
    expect(await message()).toBe('');
  });
});

it('a sidecar that had a token ends with 0, whatever became of the provider', async () => {
  const provider = await ScriptedTokenEndpoint.start(answerToken());
  const { sidecar, message } = await start(provider.url, SECRET);
  await sidecar.output(/"msg":"ready"/);
  provider.script = answer(503, 'away');
  sidecar.process.kill('SIGTERM');
  expect(await sidecar.exited).toMatchObject({ code: 0 });
  expect(await message()).toBe('');
});

it('a credential that is not required keeps neither the app from starting nor the pod from being ready', async () => {
  const provider = await ScriptedTokenEndpoint.start(answerToken());
  const file = await terminationLog();
  const { directory } = await mountSecret(SECRET);
  const config = join(dirname(file), 'token-sidecar.json');
  const route = { upstream: 'http://127.0.0.1:9' };
  await writeFile(
    config,
    JSON.stringify({
      listen: '127.0.0.1:0',
      admin: { listen: '127.0.0.1:0' },
      credentials: [
        { name: 'needed', tokenUrl: provider.url, dir: directory },
        { name: 'spare', tokenUrl: NOWHERE, dir: directory, required: false },
      ],
      routes: [
        { name: 'a', match: { pathPrefix: '/a/' }, credential: 'needed', ...route },
        { name: 'b', match: { pathPrefix: '/b/' }, credential: 'spare', ...route },
      ],
    }),
  );
  const sidecar = new RunningCommand(['proxy', `--config=${config}`, `--termination-log=${file}`]);
  const [, port] = await sidecar.output(/"admin":"127\.0\.0\.1:(\d+)"/);
  await sidecar.output(/no token obtained/);
  await sidecar.output(/"msg":"ready"/);
  for (const path of ['/startupz', '/readyz'])
    expect((await fetch(`http://127.0.0.1:${port}${path}`)).status).toBe(200);
  // So that nobody is called for a token that the pod can do without.
  expect(await (await fetch(`http://127.0.0.1:${port}/api/status`)).json()).toMatchObject({
    credentials: [
      { name: 'needed', required: true },
      { name: 'spare', required: false },
    ],
  });
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  expect(metrics).toContain('token_sidecar_credential_required{credential="needed"} 1\n');
  expect(metrics).toContain('token_sidecar_credential_required{credential="spare"} 0\n');
  expect(metrics).toContain('token_sidecar_token_ready{credential="spare"} 0\n');
  sidecar.process.kill('SIGTERM');
  expect(await sidecar.exited).toMatchObject({ code: 0 });
  expect(await readFile(file, 'utf8')).toBe('');
});

describe('the startup probe', () => {
  it('waits a moment for the first token, and is answered as soon as it is there', async () => {
    const asked = Promise.withResolvers<() => void>();
    const provider = await ScriptedTokenEndpoint.start((response, request) =>
      asked.resolve(() => answerToken()(response, request)),
    );
    const { sidecar } = await start(provider.url, SECRET);
    const [, port] = await sidecar.output(/"admin":"127\.0\.0\.1:(\d+)"/);
    const grant = await asked.promise;
    const probe = fetch(`http://127.0.0.1:${port}/startupz`);
    // Another answer shows that the probe has arrived and waits.
    await fetch(`http://127.0.0.1:${port}/livez`);
    grant();
    expect((await probe).status).toBe(200);
  });

  it('is answered 503 while there is none, within the second that the kubelet waits', async () => {
    const { sidecar } = await start(NOWHERE, SECRET);
    const [, port] = await sidecar.output(/"admin":"127\.0\.0\.1:(\d+)"/);
    const probe = await fetch(`http://127.0.0.1:${port}/startupz`, { signal: AbortSignal.timeout(5000) });
    expect(probe.status).toBe(503);
  });
});

/** Holds the first look at a configuration until standard input ends. */
const SLOW_DISK = `
  import fs from 'node:fs/promises';
  import { syncBuiltinESMExports } from 'node:module';
  const { open } = fs;
  fs.open = async (path, ...others) => {
    if (String(path).endsWith('slow.yaml')) {
      console.log('reading');
      await new Promise((resolve) => process.stdin.resume().once('end', resolve));
    }
    return await open(path, ...others);
  };
  syncBuiltinESMExports();
`;

it('a sidecar that is asked to end while it reads its configuration ends with 0, and starts nothing', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'slow-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const config = join(directory, 'slow.yaml');
  await writeFile(
    config,
    'credentials: [{ name: shop, tokenUrl: "https://login.example/token" }]\nroutes: [{ name: all, upstream: "https://api.example", credential: shop }]\n',
  );
  const sidecar = new RunningCommand(['proxy', `--config=${config}`], {
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(SLOW_DISK)}`,
    TOKEN_SIDECAR_LISTEN: '127.0.0.1:0',
    TOKEN_SIDECAR_ADMIN_LISTEN: '127.0.0.1:0',
  });
  await sidecar.output(/reading/);
  sidecar.process.kill('SIGTERM');
  sidecar.process.stdin?.end();
  expect(await sidecar.exited).toEqual({ code: 0, signal: null });
  expect(sidecar.stdout).toBe('reading\n');
  expect(sidecar.stderr).toBe('');
});
