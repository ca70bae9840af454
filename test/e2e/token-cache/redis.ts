/** A Redis of Debian's, unpacked into .cache/redis, started on a port of its own, and ended. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Certificate } from '../../support/certificate-authority.ts';
import { freePort } from '../../support/free-port.ts';

export const REDIS = join(import.meta.dirname, '../../../.cache/redis');

/** The server, and what of its libraries not every machine has. */
export const PACKAGES: readonly string[] = [
  'redis-server',
  'redis-tools',
  'libatomic1',
  'libjemalloc2',
  'liblua5.1-0',
  'liblzf1',
  'lua-bitop',
  'lua-cjson',
];

const LIBRARIES = join(REDIS, 'usr/lib', process.arch === 'arm64' ? 'aarch64-linux-gnu' : 'x86_64-linux-gnu');
const env = { PATH: process.env['PATH'] ?? '', LD_LIBRARY_PATH: LIBRARIES };

export interface RedisOptions {
  /** With it over TLS alone. */
  readonly tls?: Certificate & { readonly ca: string };
  /** Lines as in users.acl. */
  readonly users?: readonly string[];
}

/** Ends with the test, whatever state it is in. */
export async function startRedis({ tls, users = [] }: RedisOptions = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-redis-'));
  const port = await freePort();
  const file = async (name: string, text: string): Promise<string> => {
    await writeFile(join(directory, name), text, { mode: 0o600 });
    return join(directory, name);
  };
  const listening =
    tls === undefined
      ? [`port ${port}`]
      : [
          'port 0',
          `tls-port ${port}`,
          `tls-cert-file ${await file('tls.crt', tls.cert)}`,
          `tls-key-file ${await file('tls.key', tls.key)}`,
          `tls-ca-cert-file ${await file('ca.crt', tls.ca)}`,
          'tls-auth-clients no',
        ];
  const settings = ['bind 127.0.0.1', 'save ""', 'appendonly no', `dir ${directory}`, ...listening];
  const configuration = await file('redis.conf', `${[...settings, ...users].join('\n')}\n`);
  let child: ChildProcess | undefined;

  async function start(): Promise<void> {
    const started = spawn(join(REDIS, 'usr/bin/redis-server'), [configuration], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child = started;
    let printed = '';
    for await (const chunk of started.stdout) {
      printed += String(chunk);
      if (printed.includes('Ready to accept connections')) break;
    }
    if (!printed.includes('Ready to accept connections')) throw new Error(`no Redis:\n${printed}`);
  }

  /** Without a word to its clients, nor a file of its values. */
  async function kill(): Promise<void> {
    const ending = child;
    child = undefined;
    if (ending === undefined || ending.exitCode !== null) return;
    const ended = once(ending, 'exit');
    ending.kill('SIGCONT');
    ending.kill('SIGKILL');
    await ended;
  }

  onTestFinished(async () => {
    await kill();
    await rm(directory, { recursive: true, force: true });
  });
  await start();
  return {
    port,
    start,
    kill,
    /** It holds its connections and answers nothing. */
    stall: () => child?.kill('SIGSTOP'),
    resume: () => child?.kill('SIGCONT'),
  };
}

export type Redis = Awaited<ReturnType<typeof startRedis>>;
