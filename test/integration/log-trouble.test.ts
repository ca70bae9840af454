/** What becomes of the programs when their log cannot be written: they go on, lose lines and count them. */

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, existsSync, openSync, readSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Agent, request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { freePort, refusingPort } from '../support/free-port.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { MAIN, SURROUNDINGS } from '../support/run-command.ts';
import { ScriptedTokenEndpoint } from '../support/scripted-token-endpoint.ts';
import { volume } from '../support/volume.ts';

/** Many more than the log has lines for. */
const REQUESTS = volume(400, 5000);

/** Each grant writes a line that names the client: with a long name a few hundred fill a pipe. */
const CLIENT = 'shop'.padEnd(240, 'x');
/** More than a pipe, a terminal before it and the queue hold. */
const TOO_MANY = volume(1000, 4000);

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'log-trouble-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** A pipe that is read when the test says so. */
async function stalledPipe() {
  const path = join(await temporaryDirectory(), 'pipe');
  execFileSync('mkfifo', [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(path, constants.O_WRONLY);
  let open = true;
  const closeWriter = (): void => {
    if (open) closeSync(writer);
    open = false;
  };
  onTestFinished(() => {
    closeWriter();
    closeSync(reader);
  });
  return {
    writer,
    closeWriter,
    /** What is in the pipe now. */
    read(): string {
      const buffer = Buffer.alloc(1024 * 1024);
      try {
        return buffer.toString('utf8', 0, readSync(reader, buffer));
      } catch {
        return '';
      }
    },
  };
}

class Program {
  readonly process;
  readonly exited: Promise<unknown[]>;
  readonly admin: string;
  stderr = '';

  constructor(
    args: readonly string[],
    adminPort: number,
    stdout: number | 'pipe',
    nodeFlags: readonly string[] = [],
  ) {
    this.admin = `http://127.0.0.1:${adminPort}`;
    this.process = spawn(process.execPath, [...nodeFlags, MAIN, ...args], {
      stdio: ['ignore', stdout, 'pipe'],
      env: SURROUNDINGS,
    });
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.exited = once(this.process, 'exit');
    onTestFinished(async () => {
      if (this.process.exitCode === null && this.process.signalCode === null) this.process.kill('SIGKILL');
      await this.exited;
    });
  }

  async ready(): Promise<void> {
    await expect
      .poll(
        () =>
          fetch(`${this.admin}/readyz`).then(
            ({ status }) => status,
            () => this.stderr,
          ),
        { timeout: 20_000 },
      )
      .toBe(200);
  }

  async dropped(reason: 'output' | 'repeated'): Promise<number> {
    const text = await (await fetch(`${this.admin}/metrics`)).text();
    const [, value] =
      new RegExp(`^token_sidecar_log_lines_dropped_total\\{reason="${reason}"\\} (\\d+)$`, 'm').exec(text) ??
      [];
    return Number(value);
  }

  async end(): Promise<unknown[]> {
    this.process.kill('SIGTERM');
    return await this.exited;
  }
}

/** A sidecar whose upstream is away: each request fails. */
async function startFailingSidecar(stdout: number | 'pipe', nodeFlags: readonly string[] = []) {
  const provider = await ScriptedTokenEndpoint.start();
  const secret = await mountSecret({ client_id: 'shop', client_secret: 'S3CRET' });
  const [port, adminPort] = [await freePort(), await freePort()];
  const flags = {
    'token-url': provider.url,
    upstream: `http://127.0.0.1:${await refusingPort()}`,
    'credentials-dir': secret.directory,
    listen: `127.0.0.1:${port}`,
    'admin-listen': `127.0.0.1:${adminPort}`,
  };
  const program = new Program(
    Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`),
    adminPort,
    stdout,
    nodeFlags,
  );
  await program.ready();
  return { program, port };
}

/** Statuses of `count` requests, on a few kept connections. */
async function requests(
  count: number,
  options: { port: number; method?: string; path?: string; headers?: Record<string, string>; body?: string },
): Promise<Map<number, number>> {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  onTestFinished(() => agent.destroy());
  const statuses = new Map<number, number>();
  const { body, ...rest } = options;
  const one = () =>
    new Promise<void>((resolve, reject) => {
      const sent = httpRequest({ host: '127.0.0.1', agent, ...rest }, (response) => {
        const status = response.statusCode ?? 0;
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        response.resume().once('end', resolve);
      });
      sent.once('error', reject);
      sent.end(body);
    });
  let left = count;
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      while (left-- > 0) await one();
    }),
  );
  agent.destroy();
  return statuses;
}

describe('a sidecar that fails hundreds of requests goes on and ends with 0', () => {
  it('while nobody reads its log', async () => {
    const pipe = await stalledPipe();
    const { program, port } = await startFailingSidecar(pipe.writer);
    expect(await requests(REQUESTS, { port })).toEqual(new Map([[502, REQUESTS]]));
    const dropped = await program.dropped('repeated');
    // The first, and a few of other kinds and causes.
    expect(dropped).toBeGreaterThanOrEqual(REQUESTS - 20);
    expect(dropped).toBeLessThan(REQUESTS);
    expect(await program.end()).toEqual([0, null]);
    const lines = pipe.read();
    expect(lines.split('\n').length).toBeLessThan(40);
    const counted = [...lines.matchAll(/"failures":(\d+).*: more of these"/g)];
    expect(counted.reduce((sum, [, count]) => sum + Number(count), 0)).toBeGreaterThanOrEqual(dropped);
  });

  it('when the reader of its log has gone', async () => {
    const { program, port } = await startFailingSidecar('pipe');
    program.process.stdout?.destroy();
    expect(await requests(REQUESTS, { port })).toEqual(new Map([[502, REQUESTS]]));
    expect(await program.end()).toEqual([0, null]);
  });

  it('when the disk that holds its log is full', async () => {
    const full = openSync('/dev/full', 'w');
    onTestFinished(() => closeSync(full));
    const { program, port } = await startFailingSidecar(full);
    expect(await requests(REQUESTS, { port })).toEqual(new Map([[502, REQUESTS]]));
    expect(await program.end()).toEqual([0, null]);
  });
});

it('a log that nobody reads loses lines, and says how many once it is read', async () => {
  const clients = join(await temporaryDirectory(), 'clients.yaml');
  await writeFile(clients, `clients: [{ clientId: ${CLIENT}, clientSecret: s3cret, scopes: [read] }]\n`);
  const pipe = await stalledPipe();
  const [port, adminPort] = [await freePort(), await freePort()];
  const program = new Program(
    [
      'issuer',
      `--listen=127.0.0.1:${port}`,
      `--admin-listen=127.0.0.1:${adminPort}`,
      `--clients-file=${clients}`,
      '--log-level=debug',
    ],
    adminPort,
    pipe.writer,
  );
  pipe.closeWriter();
  await program.ready();
  const token = {
    port,
    method: 'POST',
    path: '/realms/dx/protocol/openid-connect/token',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      authorization: `Basic ${Buffer.from(`${CLIENT}:s3cret`).toString('base64')}`,
    },
    body: 'grant_type=client_credentials',
  };
  expect(await requests(TOO_MANY, token)).toEqual(new Map([[200, TOO_MANY]]));
  const lost = await program.dropped('output');
  expect(lost).toBeGreaterThan(0);
  const further = volume(100, 4000);
  expect(await requests(further, token)).toEqual(new Map([[200, further]]));
  expect(await program.dropped('output')).toBe(lost + further);

  let text = '';
  await expect
    .poll(
      () => {
        text += pipe.read();
        return text;
      },
      { timeout: 15_000 },
    )
    .toContain(`"lines":${lost + further},"why":"the reader was too slow","msg":"log lines were left out"`);
  expect(await program.end()).toEqual([0, null]);
  text += pipe.read();
  expect(text).toMatch(/"msg":"stopped"\}\n$/);
  for (const line of text.trimEnd().split('\n')) expect(() => JSON.parse(line)).not.toThrow();
}, 90_000);

/** Of util-linux: runs a program on a terminal of its own. */
const TERMINAL = '/usr/bin/script';

it.skipIf(!existsSync(TERMINAL))('a terminal that nobody reads holds nothing up', async () => {
  const clients = join(await temporaryDirectory(), 'clients.yaml');
  await writeFile(clients, `clients: [{ clientId: ${CLIENT}, clientSecret: s3cret, scopes: [read] }]\n`);
  const pipe = await stalledPipe();
  const [port, adminPort] = [await freePort(), await freePort()];
  const issuer = `issuer --listen=127.0.0.1:${port} --admin-listen=127.0.0.1:${adminPort} --clients-file=${clients}`;
  const terminal = spawn(
    TERMINAL,
    ['-qfec', `exec ${process.execPath} ${MAIN} ${issuer} --log-level=debug`, '/dev/null'],
    { stdio: ['ignore', pipe.writer, 'ignore'], env: SURROUNDINGS },
  );
  const exited = once(terminal, 'exit');
  onTestFinished(async () => {
    terminal.kill('SIGKILL');
    await exited;
  });
  pipe.closeWriter();
  const admin = `http://127.0.0.1:${adminPort}`;
  const readiness = (): Promise<number> =>
    fetch(`${admin}/readyz`).then(
      ({ status }) => status,
      () => 0,
    );
  await expect.poll(readiness, { timeout: 20_000 }).toBe(200);
  const token = {
    port,
    method: 'POST',
    path: '/realms/dx/protocol/openid-connect/token',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      authorization: `Basic ${Buffer.from(`${CLIENT}:s3cret`).toString('base64')}`,
    },
    body: 'grant_type=client_credentials',
  };
  expect(await requests(TOO_MANY, token)).toEqual(new Map([[200, TOO_MANY]]));
  expect(await (await fetch(`${admin}/metrics`)).text()).toMatch(
    /^token_sidecar_log_lines_dropped_total\{reason="output"\} [1-9]/m,
  );
  // The terminal goes, and with it the program.
  terminal.kill('SIGKILL');
  await expect.poll(readiness, { timeout: 20_000 }).toBe(0);
});

it('a crash ends with 70, a fatal line and a stack, and prints nothing that the error carried', async () => {
  const thrower =
    "process.on('SIGUSR2', () => { throw Object.assign(new Error('boom'), { headers: 'S3' + 'CRET' }); })";
  const { program } = await startFailingSidecar('pipe', [
    '--import',
    `data:text/javascript,${encodeURIComponent(thrower)}`,
  ]);
  let stdout = '';
  program.process.stdout?.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  program.process.kill('SIGUSR2');
  expect(await program.exited).toEqual([70, null]);
  expect(stdout).toMatch(/"level":"fatal",.*"err":\{"message":"boom"\},"msg":"crashed"\}\n$/);
  expect(program.stderr).toMatch(/^token-sidecar: Error: boom\n +at /);
  expect(stdout + program.stderr).not.toContain('S3CRET');
});
