import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { ListenAddress } from '../../src/platform/net/address.ts';

const PROGRAM = join(import.meta.dirname, 'refusing-program.ts');

/**
 * A server that refuses what is uploaded, as `refusing-program.ts` says: in a process of its own, because what matters
 * is what comes first, a further piece of the upload or the reset. It is gone when the test is over.
 * @param certificate for TLS.
 */
export async function startRefusing(
  protocol: 'http1' | 'h2',
  certificate?: { readonly cert: string; readonly key: string },
): Promise<ListenAddress> {
  const pem = certificate === undefined ? [] : [certificate.cert, certificate.key];
  const server = spawn(process.execPath, [PROGRAM, protocol, ...pem], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(server, 'exit');
  onTestFinished(async () => {
    server.kill();
    await exited;
  });
  const [port] = (await once(server.stdout, 'data')) as [Buffer];
  return { host: '127.0.0.1', port: Number(port.toString()) };
}
