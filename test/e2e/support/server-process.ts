import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const BETWEEN_CONNECTIONS_MS = 50;

export interface ServerProcess {
  /** Ends it with SIGTERM and waits until it has gone. */
  stop(): Promise<void>;
}

export interface ServerProcessOptions {
  readonly env: Readonly<Record<string, string>>;
  /** What it prints once it serves; absent of a program that prints nothing, and serves once it accepts connections. */
  readonly ready?: RegExp;
  /** The loopback ports it serves on: a program may say that it serves a moment before it listens. */
  readonly ports: readonly number[];
}

/**
 * Starts a program and waits until it says that it serves and accepts connections.
 * @throws {Error} with all that it printed, when it ends before.
 */
export async function startServerProcess(
  command: string,
  args: readonly string[],
  { env, ready, ports }: ServerProcessOptions,
): Promise<ServerProcess> {
  const path = process.env['PATH'] ?? '';
  const child = spawn(command, args, { env: { PATH: path, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()));
  await whenServing(child, ready, ports);
  return {
    async stop() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

function whenServing(
  child: ChildProcess,
  ready: RegExp | undefined,
  ports: readonly number[],
): Promise<void> {
  let printed = '';
  return new Promise((resolve, reject) => {
    const ended = new AbortController();
    let isReady = false;
    const take = (text: string): void => {
      printed += text;
      if (isReady || ready?.test(printed) === false) return;
      isReady = true;
      Promise.all(ports.map((port) => whenAccepted(port, ended.signal))).then(() => resolve(), reject);
    };
    child.stdout?.setEncoding('utf8').on('data', take);
    child.stderr?.setEncoding('utf8').on('data', take);
    if (ready === undefined) take('');
    child.once('error', reject);
    child.once('close', (code) => {
      reject(new Error(`ended with ${code} before it served:\n${printed}`));
      ended.abort();
    });
  });
}

/** Connects until someone accepts. @throws what `ended` was aborted with. */
async function whenAccepted(port: number, ended: AbortSignal): Promise<void> {
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    const accepted = await once(socket, 'connect', { signal: ended }).then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (accepted) return;
    await delay(BETWEEN_CONNECTIONS_MS, undefined, { signal: ended });
  }
}
