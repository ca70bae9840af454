import { mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { onTestFinished } from 'vitest';
import { issueCertificate } from '../../../src/injector/certificate/certificate-authority.ts';
import { injector } from '../../../src/injector/program.ts';

export const HOST = 'injector.system.svc';

/** A mounted TLS Secret, as the kubelet lays it out; each writing is a swap. */
export async function mountCertificate() {
  const root = await mkdtemp(join(tmpdir(), 'token-sidecar-tls-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  let version = 0;
  async function write(files: Readonly<Record<string, string>>): Promise<void> {
    const name = await mkdtemp(join(root, `..v${++version}`));
    for (const [file, text] of Object.entries(files)) await writeFile(join(name, file), text);
    await symlink(name, join(root, '..next'));
    await rename(join(root, '..next'), join(root, '..data'));
    if (version > 1) return;
    for (const file of Object.keys(files)) await symlink(join('..data', file), join(root, file));
  }
  async function issue(lifetimeMs = 3_600_000) {
    const { ca, cert, key } = await issueCertificate({ hosts: [HOST], nowMs: Date.now(), lifetimeMs });
    await write({ 'tls.crt': cert, 'tls.key': key });
    return ca;
  }
  return {
    issue,
    write,
    settings: ['--tls-cert-file', join(root, 'tls.crt'), '--tls-key-file', join(root, 'tls.key')],
  };
}

export type LogLine = Readonly<Record<string, unknown>>;

/** The command, in this process. */
export function runInjector(args: readonly string[]) {
  const abort = new AbortController();
  const seen: LogLine[] = [];
  const waiting: {
    readonly matches: (line: LogLine) => boolean;
    readonly resolve: (line: LogLine) => void;
  }[] = [];
  const ephemeral = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0', '--log-level', 'trace'];
  const status = injector.run({
    args: [...ephemeral, ...(args.includes('--drain-delay') ? [] : ['--drain-delay', '0s']), ...args],
    env: {},
    stdout: { write: () => undefined },
    logOutput: {
      losses: { output: 0, repeated: 0 },
      write(text) {
        const line = JSON.parse(text) as LogLine;
        seen.push(line);
        for (const { matches, resolve } of waiting) if (matches(line)) resolve(line);
      },
    },
    stderr: { write: () => undefined },
    stdin: (async function* () {})(),
    shutdown: { signal: abort.signal, request: () => abort.abort(), takeHangups: () => undefined },
  });
  onTestFinished(async () => {
    abort.abort();
    await status.catch(() => undefined);
  });
  function logged(msg: string): Promise<LogLine> {
    const matches = (line: LogLine): boolean => line['msg'] === msg;
    const found = seen.find(matches);
    if (found !== undefined) return Promise.resolve(found);
    return Promise.race([
      new Promise<LogLine>((resolve) => waiting.push({ matches, resolve })),
      // A command that fails logs nothing more.
      status.then(() => Promise.reject(new Error(`ended without ${msg}`))),
    ]);
  }
  return {
    status,
    seen,
    logged,
    stop: () => abort.abort(),
    async port(): Promise<number> {
      return Number(String((await logged('listening'))['listen']).split(':')[1]);
    },
    async probe(path: string): Promise<{ readonly status: number; readonly text: string }> {
      const response = await fetch(`http://${(await logged('listening'))['admin']}${path}`);
      return { status: response.status, text: await response.text() };
    },
  };
}

/** What the API server is to a webhook: an HTTPS client that keeps its connection and trusts one CA bundle. */
export function apiServer(port: number, ca: string, identity: { cert?: string; key?: string } = {}) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ca, servername: HOST, ...identity });
  onTestFinished(() => agent.destroy());
  return {
    call(path: string, body: string, headers: Readonly<Record<string, string>> = {}): Promise<Called> {
      return new Promise((resolve, reject) => {
        const sent = request(
          {
            host: '127.0.0.1',
            port,
            path,
            agent,
            method: 'POST',
            headers: {
              'content-type': 'application/json',
              'content-length': Buffer.byteLength(body),
              ...headers,
            },
          },
          (response) => {
            const { fingerprint256 } = (response.socket as TLSSocket).getPeerCertificate();
            const { localPort } = response.socket;
            let text = '';
            response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
            response.on('end', () =>
              resolve({
                status: response.statusCode ?? 0,
                text,
                certificate: fingerprint256,
                connection: response.headers.connection,
                localPort,
              }),
            );
          },
        );
        sent.on('error', reject);
        sent.end(body);
      });
    },
  };
}

export interface Called {
  readonly status: number;
  readonly text: string;
  readonly certificate: string;
  readonly connection: string | undefined;
  /** Tells one connection from another. */
  readonly localPort: number | undefined;
}
