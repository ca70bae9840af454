import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import type { ListenAddress } from '../../../src/platform/net/address.ts';
import { until } from '../../support/until.ts';
import type { FrameUpstream } from './frame-upstream.ts';

/** Stands before an upstream; what stands goes on, whatever becomes of connections that are made later. */
export interface Front {
  readonly address: ListenAddress;
  readonly protocol: 'http' | 'https';
  readonly caFile: string | undefined;
  /** Further connections are taken, and no byte of them is passed on. */
  hold(): void;
  /** Further connections are refused. */
  close(): Promise<void>;
}

export async function startFront({ address, protocol, caFile }: FrameUpstream): Promise<Front> {
  const sockets = new Set<Socket>();
  let holds = false;
  const server = createServer((inbound) => {
    sockets.add(inbound);
    inbound.on('error', () => inbound.destroy());
    if (holds) return;
    const outbound = connect(address.port, address.host);
    sockets.add(outbound);
    outbound.on('error', () => inbound.destroy());
    inbound.on('close', () => outbound.destroy());
    inbound.pipe(outbound).pipe(inbound);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    if (server.listening) server.close();
  });
  return {
    address: { host: '127.0.0.1', port },
    protocol,
    caFile,
    hold: () => {
      holds = true;
    },
    // What is left open would keep `close` waiting: that it does not listen any more is enough.
    close: async () => {
      server.close();
      await until(() => !server.listening);
    },
  };
}
