import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { onTestFinished } from 'vitest';

/** Below what the system gives to those who ask for any port: nobody gets one of these by chance. */
const LOWEST = 12_000;
const HIGHEST = 32_000;

/** What this process has given away already: nobody listens on it yet, and somebody is about to. */
const GIVEN = new Set<number>();

/** A loopback port that nothing listens on, another one at each call, for a program that cannot tell which one it picked. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST));
    if (GIVEN.has(port)) continue;
    GIVEN.add(port);
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
    });
    if (free) return port;
  }
}

/** A loopback port on which nobody listens, and nobody can begin to: a connection of the test's own has it at its near end. */
export async function refusingPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const holder = connect((server.address() as AddressInfo).port, '127.0.0.1');
  await once(holder, 'connect');
  onTestFinished(() => {
    holder.destroy();
    server.close();
  });
  const { localPort } = holder;
  if (localPort === undefined) throw new Error('the connection was lost');
  return localPort;
}
