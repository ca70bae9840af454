import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import type { ListenAddress } from '../../src/platform/net/address.ts';

/** An address that passes bytes on to another, which may become known later. */
export interface Relay {
  readonly address: ListenAddress;
  to(target: ListenAddress): void;
}

export async function startRelay(): Promise<Relay> {
  const sockets = new Set<Socket>();
  let target: ListenAddress | undefined;
  const server = createServer((inbound) => {
    if (target === undefined) throw new Error('a connection came before the relay had a target');
    const outbound = connect(target.port, target.host);
    sockets.add(inbound).add(outbound);
    inbound.pipe(outbound).pipe(inbound);
    inbound.on('error', () => outbound.destroy());
    outbound.on('error', () => inbound.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the relay does not listen on TCP');
  return {
    address: { host: '127.0.0.1', port: address.port },
    to: (next) => {
      target = next;
    },
  };
}
