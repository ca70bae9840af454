import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { ListenAddress } from '../../src/platform/net/address.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { RunningCommand } from '../support/run-command.ts';
import { App } from './app.ts';
import { Scrape } from './scrape.ts';

export interface ChildOptions {
  readonly tokenUrl: string;
  readonly upstreamUrl: string;
  /** A command that runs the sidecar: `unshare …`. */
  readonly through?: readonly string[];
  /** Beside those that every program of a test has. */
  readonly env?: Readonly<Record<string, string>>;
}

interface LoggedGrant {
  readonly time: string;
  readonly msg: string;
  readonly result?: string;
  readonly detail?: string;
  readonly durationMs: number;
}

/** Bounds of a child's grant and of an app's wait, short so that rows in real time are. */
export const REQUEST_MS = 1000;
export const WAIT_MS = 1000;

/** The sidecar as a process, in real time. */
export class ChildSidecar {
  readonly command: RunningCommand;
  readonly app: App;
  readonly admin: ListenAddress;

  private constructor(command: RunningCommand, proxy: ListenAddress, admin: ListenAddress) {
    this.command = command;
    this.app = new App(proxy, () => performance.now());
    this.admin = admin;
  }

  static async start({ tokenUrl, upstreamUrl, through = [], env = {} }: ChildOptions): Promise<ChildSidecar> {
    const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-faults-'));
    onTestFinished(() => rm(directory, { recursive: true }));
    const secret = await mountSecret({ client_id: 'shop', client_secret: 'right-1' });
    const path = join(directory, 'token-sidecar.json');
    const config = {
      listen: '127.0.0.1:0',
      admin: { listen: '127.0.0.1:0' },
      credentials: [
        {
          name: 'default',
          tokenUrl,
          allowInsecureTokenUrl: true,
          dir: secret.directory,
          timeouts: { request: `${REQUEST_MS}ms`, wait: `${WAIT_MS}ms` },
        },
      ],
      routes: [{ name: 'api', upstream: upstreamUrl, credential: 'default' }],
    };
    await writeFile(path, JSON.stringify(config));
    // Each failed grant is a line at level `debug`.
    const command = new RunningCommand(['proxy', '--config', path, '--log-level', 'debug'], env, through);
    const [line] = await command.output(/^.*"msg":"listening".*$/m);
    await command.output(/"msg":"ready"/);
    const { proxy, admin } = JSON.parse(line) as { proxy: string; admin: string };
    return new ChildSidecar(command, parseAddress(proxy), parseAddress(admin));
  }

  metrics(): Promise<Scrape> {
    return Scrape.of(this.admin);
  }

  /** Grants that ended, as the log tells them; when each began, in wall ms. */
  grants(): { readonly atMs: number; readonly detail: string | undefined }[] {
    return this.command.stdout
      .split('\n')
      .filter((line) => /"msg":"(no )?token obtained"/.test(line))
      .map((line) => JSON.parse(line) as LoggedGrant)
      .map(({ time, durationMs, detail }) => ({ atMs: Date.parse(time) - durationMs, detail }));
  }

  /** The app sends a request every `everyMs` until the condition holds. */
  async live(everyMs: number, until: () => boolean | Promise<boolean>): Promise<void> {
    while (!(await until())) {
      const pause = new Promise((resolve) => setTimeout(resolve, everyMs));
      await Promise.all([this.app.send(), pause]);
    }
  }

  /** Ends it as the kubelet does; resolves to its exit status. */
  async terminate(): Promise<number | null> {
    this.command.process.kill('SIGTERM');
    return (await this.command.exited).code;
  }
}

function parseAddress(text: string): ListenAddress {
  const colon = text.lastIndexOf(':');
  return { host: text.slice(0, colon), port: Number(text.slice(colon + 1)) };
}
