/** What ends TLS for an app and begins another: each with the configuration that makes it add the token. */

import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { readShippedNode } from '../../test/support/shipped-node.ts';
import { freePort } from '../free-port.ts';
import { findProgram, PROGRAM_ENVIRONMENT } from '../programs.ts';
import { CLIENT_ID, CLIENT_SECRET } from '../token-endpoint.ts';
import type { Target } from './load.ts';
import { MITMPROXY } from './mitmproxy.ts';
import { type Dependencies, HOST, TOKEN } from './surroundings.ts';

const ROOT = join(import.meta.dirname, '../..');
const BUNDLE = join(ROOT, 'dist/token-sidecar.js');

/** What is judged. */
export const SIDECAR = 'sidecar';

export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** Resolves when it accepts connections. */
  listening(child: ChildProcess): Promise<Target>;
}

export interface Running {
  readonly pid: number;
  readonly target: Target;
  readonly listeningMs: number;
  stop(): Promise<void>;
}

export interface Contestant {
  readonly name: string;
  /** Is only started: there is nothing that it would have in common with the others. */
  readonly startsOnly?: true;
  /** Why it cannot be measured here. */
  missing(): Promise<string | undefined>;
  prepare(surroundings: Dependencies): Promise<Launch>;
}

/** Looked at as often as that, from the moment that it is started. */
const LOOK_MS = 2;

async function accepts(port: number, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`);
    const stands = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true));
      socket.once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
    if (stands) return;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

function sidecar(name: string, intercepts: boolean): Contestant {
  return {
    name,
    ...(intercepts ? {} : { startsOnly: true }),
    missing: async () => (existsSync(BUNDLE) ? undefined : 'dist/ is missing: npm run build'),
    async prepare({ directory, apiPort, tokenPort, caFile }) {
      const own = await mkdtemp(join(directory, 'sidecar-'));
      const secret = join(own, 'secret');
      await mkdir(secret);
      await writeFile(join(secret, 'client_id'), CLIENT_ID);
      await writeFile(join(secret, 'client_secret'), CLIENT_SECRET);
      const port = await freePort();
      const file = join(own, 'token-sidecar.json');
      const listed = { host: HOST, port: apiPort, tls: { caFile }, upgradeToTls: true };
      await writeFile(
        file,
        JSON.stringify({
          listen: `127.0.0.1:${port}`,
          admin: { listen: '127.0.0.1:0' },
          credentials: [{ name: 'default', tokenUrl: `http://127.0.0.1:${tokenPort}/token`, dir: secret }],
          forwardProxy: { allow: [listed], connect: intercepts ? 'intercept' : 'tunnel' },
          ...(intercepts ? { interception: { directory: join(own, 'trust') } } : {}),
        }),
      );
      const { flags, env } = await readShippedNode();
      const authority = `${HOST}:${apiPort}`;
      return {
        command: process.execPath,
        args: [...flags, BUNDLE],
        env: { ...env, TOKEN_SIDECAR_CONFIG: file },
        async listening(child) {
          await accepts(port, child);
          return { port, name: HOST, authority, byConnect: true };
        },
      };
    },
  };
}

const haproxy: Contestant = {
  name: 'HAProxy, a fixed certificate',
  missing: async () =>
    (await findProgram('haproxy')) === undefined ? 'not installed: node bench/install.ts' : undefined,
  async prepare({ directory, apiPort, caFile, fixedFile }) {
    const own = await mkdtemp(join(directory, 'haproxy-'));
    const port = await freePort();
    const file = join(own, 'haproxy.cfg');
    await writeFile(
      file,
      `
global
  nbthread 1
  maxconn 4096
  tune.maxrewrite 8192
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  http-reuse always
frontend app
  bind 127.0.0.1:${port} ssl crt ${fixedFile}
  http-request set-header Authorization "Bearer ${TOKEN}"
  default_backend api
backend api
  server upstream 127.0.0.1:${apiPort} pool-purge-delay 1h ssl verify required ca-file ${caFile} sni str(${HOST}) verifyhost ${HOST}
`,
    );
    const program = await findProgram('haproxy');
    return {
      command: program?.path ?? 'haproxy',
      args: ['-db', '-q', '-f', file],
      env: PROGRAM_ENVIRONMENT,
      async listening(child) {
        await accepts(port, child);
        return { port, name: HOST, authority: HOST, byConnect: false };
      },
    };
  },
};

const mitmproxy: Contestant = {
  name: 'mitmproxy',
  missing: async () =>
    existsSync(MITMPROXY) ? undefined : 'not installed: node bench/interception/install.ts',
  async prepare({ directory, apiPort, caFile }) {
    const own = await mkdtemp(join(directory, 'mitmproxy-'));
    const port = await freePort();
    const options = {
      confdir: own,
      ssl_verify_upstream_trusted_ca: caFile,
      modify_headers: `/~q/Authorization/Bearer ${TOKEN}`,
      listen_host: '127.0.0.1',
      listen_port: String(port),
      flow_detail: '0',
    };
    const set = Object.entries(options).flatMap(([name, value]) => ['--set', `${name}=${value}`]);
    const authority = `${HOST}:${apiPort}`;
    return {
      command: 'python3',
      args: ['-c', 'from mitmproxy.tools.main import mitmdump; mitmdump()', '--quiet', ...set],
      env: { PATH: process.env['PATH'], HOME: own, PYTHONPATH: MITMPROXY },
      async listening(child) {
        await accepts(port, child);
        return { port, name: HOST, authority, byConnect: true };
      },
    };
  },
};

export const CONTESTANTS: readonly Contestant[] = [
  sidecar(SIDECAR, true),
  sidecar(`${SIDECAR}, interception off`, false),
  haproxy,
  mitmproxy,
];
