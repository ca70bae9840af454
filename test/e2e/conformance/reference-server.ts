import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import { goProgram } from './programs.ts';
import type { Identity } from './surroundings.ts';

export interface ReferenceServerOptions {
  readonly version: 'HTTP_VERSION_1' | 'HTTP_VERSION_2';
  readonly identity: Identity | undefined;
  /** Where it runs: what a command is put behind. */
  readonly enter?: readonly string[];
  /** A free port of loopback, unless it is said. */
  readonly at?: { readonly host: string; readonly port: number };
}

/** What the suite's runner asks of a server, in bytes of a message. */
const MESSAGE_RECEIVE_LIMIT = 200 * 1024;

/**
 * The server of connectconformance, gone after the test. It speaks Connect, gRPC and gRPC-Web.
 * @returns its port.
 */
export async function startReferenceServer(options: ReferenceServerOptions): Promise<number> {
  const { version, identity, enter = [], at } = options;
  const tls = identity === undefined ? [] : ['-cert', identity.cert, '-key', identity.key];
  const address = at === undefined ? [] : ['-bind', at.host, '-port', String(at.port)];
  const [command, ...args] = [...enter, goProgram('referenceserver'), '-json', ...tls, ...address] as [
    string,
    ...string[],
  ];
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'close');
  onTestFinished(async () => {
    child.kill();
    await exited;
  });
  child.stdin.end(
    JSON.stringify({
      httpVersion: version,
      useTls: identity !== undefined,
      messageReceiveLimit: MESSAGE_RECEIVE_LIMIT,
    }),
  );
  const ended = exited.then(() => {
    throw new Error('the server ended before it served');
  });
  let printed = '';
  child.stdout.setEncoding('utf8');
  while (!printed.includes('}')) {
    printed += ((await Promise.race([once(child.stdout, 'data'), ended])) as [string])[0];
  }
  return (JSON.parse(printed) as { readonly port: number }).port;
}
