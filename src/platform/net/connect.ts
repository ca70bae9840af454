/**
 * How the product makes its connections, all of them: to the first of a host's addresses that answers (RFC 8305), and
 * over TLS by a name without the dot of DNS.
 */

import type { Agent } from 'node:http';
import { connect, type LookupFunction, type Socket, type TcpNetConnectOpts } from 'node:net';
import { type ConnectionOptions, connect as connectOverTls, type TLSSocket } from 'node:tls';
import { type Clock, systemClock } from '../time/clock.ts';
import { addressesInTurn } from './addresses-in-turn.ts';
import { ATTEMPT_DELAY_MS, race } from './race.ts';
import { serverNameOf } from './server-name.ts';
import { ownLookup } from './system-lookups.ts';
import { findTakeOver, type TakeOver } from './take-over.ts';

/** Where the race cannot be run, Node tries one address after the other, and drops each but the last after this. */
const NODE_ATTEMPT_MS = 1000;

/** Options of `net.connect` and `tls.connect` that are read here. */
interface Destination {
  readonly host?: string | null | undefined;
  readonly port?: number | string | null | undefined;
  readonly lookup?: LookupFunction | undefined;
  /** The next address is tried after this, where it is less than usual: of use where there is little time for all. */
  readonly autoSelectFamilyAttemptTimeout?: number | undefined;
}

interface Means {
  readonly clock: Clock;
  readonly takeOver: TakeOver | undefined;
}

const MEANS: Means = { clock: systemClock, takeOver: findTakeOver() };

/** As `net.connect`. The socket is not to be wrapped in TLS before it is connected. */
export function connectTcp(options: TcpNetConnectOpts, means: Means = MEANS): Socket {
  return raced(options, connect, means);
}

/** As `tls.connect`. */
export function connectTls(options: ConnectionOptions, means: Means = MEANS): TLSSocket {
  const named = { ...options, servername: serverNameOf(options.servername ?? options.host ?? '') };
  // Over a stream of the caller's there is nothing to connect.
  return named.socket === undefined ? raced(named, connectOverTls, means) : connectOverTls(named);
}

/** Has an agent, for HTTP or HTTPS, connect by the same rules. */
export function byTheRules<A extends Agent>(agent: A): A {
  const make = agent.createConnection.bind(agent);
  agent.createConnection = (options) => {
    const { servername, host } = options as ConnectionOptions;
    const named = { ...options, servername: serverNameOf(servername || host || '') };
    return raced(named as Destination, (destination) => make(destination) as Socket, MEANS);
  };
  return agent;
}

/** @param make begins the connection, and has Node ask for the name, if there is one. */
function raced<O extends Destination, S extends Socket>(
  options: O,
  make: (options: O) => S,
  { clock, takeOver }: Means,
): S {
  const { lookup = ownLookup, port, autoSelectFamilyAttemptTimeout: mostMs } = options;
  const attemptMs = Math.min(NODE_ATTEMPT_MS, mostMs ?? NODE_ATTEMPT_MS);
  let socket: S | undefined;
  let end = (): void => {};
  const find: LookupFunction = (hostname, lookupOptions, told) => {
    lookup(hostname, lookupOptions, (error, found, family) => {
      const addresses = error === null && Array.isArray(found) ? addressesInTurn(found) : [];
      if (addresses.length < 2 || takeOver === undefined) {
        told(error, found, family);
        return;
      }
      if (socket?.destroyed) return;
      end = race({
        addresses,
        delayMs: Math.min(ATTEMPT_DELAY_MS, attemptMs),
        clock,
        connect: ({ address }) => connect({ host: address, port: Number(port) }),
        onWon(winner, address) {
          // An open connection keeps nothing of the race.
          end = () => {};
          // It closes in a later turn than it is given up in.
          if (socket === undefined || socket.destroyed) {
            winner.destroy();
            return;
          }
          takeOver(socket, winner);
          told(null, [address]);
        },
        onLost: (failure) => told(failure, []),
      });
    });
  };
  socket = make({
    ...options,
    lookup: find,
    // Explicit, so that NODE_OPTIONS cannot have Node ask for one address alone.
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: attemptMs,
  });
  socket.once('close', () => end());
  return socket;
}
