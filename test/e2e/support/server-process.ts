import { type ChildProcess, spawn } from 'node:child_process';
import { createServer } from 'node:net';

export interface ServerProcess {
  /** Ends it with SIGTERM and waits until it has gone. */
  stop(): Promise<void>;
}

export interface ServerProcessOptions {
  readonly env: Readonly<Record<string, string>>;
  /** What it prints once it serves. */
  readonly ready: RegExp;
}

/**
 * Starts a program and waits until it says that it serves.
 * @throws {Error} with all that it printed, when it ends before.
 */
export async function startServerProcess(
  command: string,
  args: readonly string[],
  { env, ready }: ServerProcessOptions,
): Promise<ServerProcess> {
  const path = process.env['PATH'] ?? '';
  const child = spawn(command, args, { env: { PATH: path, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()));
  await whenReady(child, ready);
  return {
    async stop() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

function whenReady(child: ChildProcess, ready: RegExp): Promise<void> {
  let printed = '';
  return new Promise((resolve, reject) => {
    const take = (text: string): void => {
      printed += text;
      if (ready.test(printed)) resolve();
    };
    child.stdout?.setEncoding('utf8').on('data', take);
    child.stderr?.setEncoding('utf8').on('data', take);
    child.once('error', reject);
    child.once('close', (code) => reject(new Error(`ended with ${code} before it served:\n${printed}`)));
  });
}

/** Ports that were free a moment ago, for servers that must be told theirs. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve) =>
          server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port)),
        ),
    ),
  );
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
