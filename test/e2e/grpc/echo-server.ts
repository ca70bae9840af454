import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import { selfSigned } from '../../wire/certificate.ts';
import { temporaryFile } from '../../wire/temporary-file.ts';
import { GO_SERVER, type Program } from './programs.ts';

/** A call as the server has seen it end. */
export interface ServedCall {
  readonly method: string;
  readonly authorization: readonly string[];
  /** By its name in Go: `OK`, `Canceled`. */
  readonly status: string;
}

export interface EchoServer {
  readonly url: string;
  /** Of the route to it: how it is spoken to, and whom to trust. */
  readonly route: { readonly protocol: 'h2' | 'h2c'; readonly tls?: { readonly caFile: string } };
  /** In the order of their ends. */
  readonly calls: readonly ServedCall[];
  /** Resolves once `condition` holds for the calls that have ended. */
  until(condition: (calls: readonly ServedCall[]) => boolean): Promise<void>;
}

export interface EchoServerOptions {
  readonly upstream: 'plain' | 'TLS';
  /** What the authorization of every call must begin with. */
  readonly authorization: string;
  /** An authorization that it refuses from its second call on. */
  readonly revoked?: string;
  /** What serves; the server in Go, unless it is said. */
  readonly program?: Program;
  /** After how long the server in Go ends each connection, gracefully; as a duration in Go. */
  readonly connectionAge?: string;
}

/** A gRPC server, gone after the test. @throws {Error} when it ends before it serves. */
export async function startEchoServer(options: EchoServerOptions): Promise<EchoServer> {
  const { upstream, authorization, program = GO_SERVER, revoked = '', connectionAge } = options;
  const args = [...program.args, '-authorization', authorization];
  if (revoked !== '') args.push('-revoked', revoked);
  if (connectionAge !== undefined) args.push('-connection-age', connectionAge);
  const certificate = selfSigned('127.0.0.1');
  const caFile = await temporaryFile('ca.crt', certificate.cert);
  if (upstream === 'TLS') args.push('-cert', caFile, '-key', await temporaryFile('tls.key', certificate.key));

  const child = spawn(program.command, args, {
    env: { ...process.env, ...program.env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(child, 'close');
  onTestFinished(async () => {
    child.stdin.end();
    await exited;
  });
  const calls: ServedCall[] = [];
  const waiting = new Set<() => void>();
  const lines = createInterface({ input: child.stdout });
  const ended = exited.then(() => {
    throw new Error('the server ended before it served');
  });
  const [first] = (await Promise.race([once(lines, 'line'), ended])) as [string];
  lines.on('line', (line) => {
    calls.push(JSON.parse(line) as ServedCall);
    for (const look of waiting) look();
  });
  const { port } = JSON.parse(first) as { port: number };
  return {
    url: `${upstream === 'TLS' ? 'https' : 'http'}://127.0.0.1:${port}`,
    route: upstream === 'TLS' ? { protocol: 'h2', tls: { caFile } } : { protocol: 'h2c' },
    calls,
    until: (condition) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!condition(calls)) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
  };
}
