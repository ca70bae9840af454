/** TLS inside a proxy's tunnel. Loaded only if a route has one. */

import type { OnReadOpts, TcpNetConnectOpts } from 'node:net';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import type { EgressProxyConfig } from '../../config/config.ts';
import type { Clock } from '../../platform/time/clock.ts';
import { EgressTunnel, goesThrough } from '../../token/egress/egress-tunnel.ts';
import type { Network } from '../io/network.ts';
import { tellEnd } from './close-notify.ts';

export interface EgressDial {
  readonly proxy: EgressProxyConfig;
  readonly tcp: TcpNetConnectOpts & { readonly onread: OnReadOpts; readonly host: string };
  readonly tls: ConnectionOptions;
  readonly connectMs: number;
  readonly clock: Clock;
  readonly network: Network;
}

/** The error names the proxy if this ends before the connection's deadline. */
const SOONER = 0.95;

/** Emits `connect` once the tunnel is open. Undefined if the host is reached directly. */
export function dialThrough(dial: EgressDial): TLSSocket | undefined {
  const { proxy, tcp, tls, connectMs, clock, network } = dial;
  if (!goesThrough(proxy, tcp.host)) return undefined;
  const tunnel = new EgressTunnel({
    proxy,
    host: tcp.host,
    port: tcp.port,
    withinMs: connectMs * SOONER,
    clock,
    connectTcp: network.connectTcp,
    onStands: () => socket.emit('connect'),
  });
  let socket: TLSSocket;
  try {
    socket = network.connectTls({ ...tls, host: tcp.host, socket: tunnel });
  } catch (error) {
    tunnel.destroy();
    throw error;
  }
  watchEnd(socket, tunnel);
  // Over a stream Node ignores `onread`.
  socket.on('data', (chunk: Buffer) => readInto(tcp.onread, chunk));
  return socket;
}

/** Node ends a TLS socket during the tunnel's `data` if close_notify came, otherwise during its `end`. */
function watchEnd(socket: TLSSocket, tunnel: EgressTunnel): void {
  let cut: boolean | undefined;
  tellEnd(socket, () => cut !== true);
  const push = socket.push.bind(socket);
  socket.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (chunk === null) cut ??= tunnel.readableEnded;
    return push(chunk, encoding);
  };
}

function readInto({ buffer, callback }: OnReadOpts, chunk: Buffer): void {
  const target = typeof buffer === 'function' ? buffer() : buffer;
  for (let at = 0; at < chunk.length; at += target.length) {
    const piece = chunk.subarray(at, at + target.length);
    target.set(piece);
    callback(piece.length, target);
  }
}
