import { connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import type { EgressProxyConfig } from '../../src/config/config.ts';
import type { ListenAddress } from '../../src/platform/net/address.ts';

export interface ConnectProxyOptions {
  /** What is said to CONNECT, in place of a tunnel; undefined says nothing. */
  readonly answer?: string | undefined;
  /** Before the tunnel's bytes, in place of the usual answer. */
  readonly consent?: string;
}

/** A proxy that knows CONNECT alone, and whose tunnels all lead to one place, whatever was asked for. */
export async function startConnectProxy(target: ListenAddress, options: ConnectProxyOptions = {}) {
  /** Heads of what was asked. */
  const asked: string[] = [];
  /** The place has ended what it had to say in a tunnel. */
  const ended = Promise.withResolvers<void>();
  const sockets = new Set<Socket>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
  };
  const server = createServer((socket) => {
    keep(socket);
    let head = '';
    socket.on('data', function read(chunk: Buffer) {
      head += chunk.toString('latin1');
      if (!head.endsWith('\r\n\r\n')) return;
      socket.off('data', read);
      asked.push(head);
      if ('answer' in options) {
        if (options.answer !== undefined) socket.end(options.answer, 'latin1');
        return;
      }
      const upstream = connect(target);
      keep(upstream);
      socket.write(options.consent ?? 'HTTP/1.1 200 Connection established\r\nVia: 1.1 test\r\n\r\n');
      socket.pipe(upstream).pipe(socket);
      upstream.once('end', ended.resolve);
      // What the tunnel still holds is delivered.
      upstream.once('close', () => socket.destroySoon());
      socket.once('close', () => upstream.destroy());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const { port } = server.address() as { port: number };
  const config: EgressProxyConfig = { host: '127.0.0.1', port, noProxy: [] };
  /** Ends every connection. */
  const reset = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  /** Connections that are open. */
  const open = () => [...sockets].filter((socket) => !socket.destroyed).length;
  return { asked, config, reset, open, ended: ended.promise };
}
