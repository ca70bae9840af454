import {
  connect as connectTcp,
  createServer,
  type LookupFunction,
  type Server,
  type ServerOpts,
  type Socket,
  type TcpNetConnectOpts,
} from 'node:net';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import { findPeers, type Peer } from './peer-socket.ts';

/** All that the data path asks of the system's network. Tests put one of their own in its place. */
export interface Network {
  /** As `net.connect`. */
  connectTcp(options: TcpNetConnectOpts): Socket;
  /** As `tls.connect`. */
  connectTls(options: ConnectionOptions): TLSSocket;
  /** As `net.createServer`. */
  createServer(options: ServerOpts, onAccepted: (socket: Socket) => void): Server;
  /** Whether a process still holds the other end of accepted connections that have ended their side, in their order. */
  findPeers(accepted: readonly Socket[]): Promise<readonly Peer[]>;
}

export const systemNetwork: Network = { connectTcp, connectTls, createServer, findPeers };

/** The system's network, where the names of upstreams are found by `lookup`. */
export function networkWithLookup(lookup: LookupFunction): Network {
  return {
    ...systemNetwork,
    connectTcp: (options) => connectTcp({ ...options, lookup }),
    connectTls: (options) => connectTls({ ...options, lookup }),
  };
}
