import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const LISTENING_BOUND_MS = 15_000;

/** A port of loopback that nobody listens on, for programs that cannot choose one themselves. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/**
 * Resolves at the first connection that is accepted, tried every millisecond.
 * @throws {Error} when `failure` gives a reason, or after 15 s.
 */
export async function whenListening(port: number, failure: () => string | undefined): Promise<void> {
  const end = performance.now() + LISTENING_BOUND_MS;
  while (!(await accepts(port))) {
    const reason = failure();
    if (reason !== undefined) throw new Error(reason);
    if (performance.now() > end)
      throw new Error(`nothing listens on port ${port} after ${LISTENING_BOUND_MS} ms`);
    await sleep(1);
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
