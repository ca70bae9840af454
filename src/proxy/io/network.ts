import { lookup as systemLookup } from 'node:dns';
import {
  createServer,
  type LookupFunction,
  type Server,
  type ServerOpts,
  type Socket,
  type TcpNetConnectOpts,
} from 'node:net';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { connectTcp, connectTls } from '../../platform/net/connect.ts';
import { DNS_BOUNDS, SharedLookups, UPSTREAM_BOUNDS } from '../../platform/net/lookups.ts';
import { findPeers, type Peer } from './peer-socket.ts';

interface ForParty {
  /** Has a share of simultaneous lookups; without it each name has one. */
  readonly party?: string | undefined;
}

/** Tests replace it. */
export interface Network {
  /** `net.connect`, to the first address that answers. */
  connectTcp(options: TcpNetConnectOpts & ForParty): Socket;
  /** `tls.connect`, to the first address that answers. */
  connectTls(options: ConnectionOptions & ForParty): TLSSocket;
  createServer(options: ServerOpts, onAccepted: (socket: Socket) => void): Server;
  /** Answers in the given order, for connections that have ended their side. */
  findPeers(accepted: readonly Socket[]): Promise<readonly Peer[]>;
}

export const systemNetwork: Network = networkWithLookup(systemLookup as LookupFunction);

/**
 * Connections that wait for one name share its `lookup`.
 * @param byDns names that `lookup` asks DNS for, in lower case.
 */
export function networkWithLookup(lookup: LookupFunction, byDns: ReadonlySet<string> = new Set()): Network {
  const ofSystem = new SharedLookups(lookup, UPSTREAM_BOUNDS);
  const ofDns = new SharedLookups(lookup, DNS_BOUNDS);
  const lookupsOf: LookupsOf = (hostname) => (byDns.has(hostname.toLowerCase()) ? ofDns : ofSystem);
  return {
    connectTcp: ({ party, ...options }) =>
      dialled(lookupsOf, party, (shared) => connectTcp({ ...options, lookup: shared } as TcpNetConnectOpts)),
    connectTls: ({ party, ...options }) =>
      dialled(lookupsOf, party, (shared) => connectTls({ ...options, lookup: shared })),
    createServer,
    findPeers,
  };
}

type LookupsOf = (hostname: string) => SharedLookups;

/** @param dial has Node ask for the name before it returns. */
function dialled<S extends Socket>(
  lookupsOf: LookupsOf,
  party: string | undefined,
  dial: (lookup: LookupFunction) => S,
): S {
  let leave: (() => void) | undefined;
  const socket = dial((hostname, options, told) => {
    const answered: typeof told = (...answer) => {
      if (leave !== undefined) socket.off('close', leave);
      told(...answer);
    };
    leave = lookupsOf(hostname).ask(hostname, options, answered, party);
  });
  if (leave !== undefined) socket.once('close', leave);
  return socket;
}
