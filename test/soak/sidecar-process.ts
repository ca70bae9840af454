import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { formats } from '../../src/config/values.ts';
import type { ListenAddress } from '../../src/platform/net/address.ts';
import { readShippedNode } from '../support/shipped-node.ts';

const BUNDLE = join(import.meta.dirname, '../../dist/token-sidecar.js');
const START_BOUND_MS = 20_000;

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The sidecar as it is shipped: the bundle under the image's flags, a process of its own. */
export interface SidecarProcess {
  readonly proxy: ListenAddress;
  readonly admin: ListenAddress;
  readonly exited: Promise<Exit>;
  /** Lines of log so far. */
  logged(): number;
  /** Lines of log that are not of level info, the first few. */
  readonly warnings: readonly string[];
  /** Lines in which `isForbidden` found what no log may hold. */
  leaks(): number;
  /** Sends SIGTERM, and SIGKILL if that has not ended it within the bound. */
  terminate(boundMs: number): Promise<Exit>;
}

const WARNINGS_KEPT = 5;

/** @throws {Error} with what it wrote to standard error, when it ends or is not ready within 20 s. */
export async function startSidecarProcess(
  environment: Readonly<Record<string, string>>,
  isForbidden: (line: string) => boolean,
): Promise<SidecarProcess> {
  const { flags, env } = await readShippedNode();
  const child = spawn(process.execPath, [...flags, BUNDLE], {
    env: { PATH: process.env['PATH'] ?? '', ...env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own: an interrupt from the terminal is ours to pass on, once the load has ended.
    detached: true,
  });
  const killed = (): void => void child.kill('SIGKILL');
  process.once('exit', killed);
  const exited = new Promise<Exit>((resolve) => {
    child.once('close', (code, signal) => {
      process.off('exit', killed);
      resolve({ code, signal });
    });
  });

  const warnings: string[] = [];
  let lines = 0;
  let leaks = 0;
  let stderr = '';
  let listening: { proxy: ListenAddress; admin: ListenAddress } | undefined;
  const started = Promise.withResolvers<{ proxy: ListenAddress; admin: ListenAddress }>();
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-4000);
    if (isForbidden(text)) leaks += 1;
  });
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines += 1;
    if (isForbidden(line)) leaks += 1;
    const { level, msg, proxy, admin } = parse(line);
    if (level !== 'info' && warnings.length < WARNINGS_KEPT) warnings.push(line);
    if (msg === 'listening') listening = { proxy: address(proxy), admin: address(admin) };
    if (msg === 'ready' && listening !== undefined) started.resolve(listening);
  });
  const failed = (why: string): void => {
    started.reject(new Error(`the sidecar ${why}:\n${[...warnings, stderr].join('\n')}`));
  };
  const bound = setTimeout(() => failed(`was not ready within ${START_BOUND_MS} ms`), START_BOUND_MS);
  void exited.then(({ code, signal }) => failed(`ended with ${code ?? signal} before it was ready`));

  try {
    return {
      ...(await started.promise),
      exited,
      warnings,
      logged: () => lines,
      leaks: () => leaks,
      terminate: (boundMs) => terminate(child, exited, boundMs),
    };
  } catch (error) {
    await terminate(child, exited, 0);
    throw error;
  } finally {
    clearTimeout(bound);
  }
}

async function terminate(child: ChildProcess, exited: Promise<Exit>, boundMs: number): Promise<Exit> {
  child.kill('SIGTERM');
  const bound = setTimeout(() => child.kill('SIGKILL'), boundMs);
  const exit = await exited;
  clearTimeout(bound);
  return exit;
}

/** What is no JSON, such as a warning of the runtime's, has no level, and is kept with the warnings. */
function parse(line: string): Partial<Record<'level' | 'msg' | 'proxy' | 'admin', string>> {
  try {
    return JSON.parse(line);
  } catch {
    return {};
  }
}

function address(text: string | undefined): ListenAddress {
  const parsed = formats.listenAddress.parse(text ?? '');
  if (parsed === undefined) throw new Error(`the log names an address ${JSON.stringify(text)}`);
  return parsed;
}
