/** Connects to the first of a host's addresses that answers (RFC 8305). */

import type { LookupAddress } from 'node:dns';
import type { Agent } from 'node:http';
import { connect, type LookupFunction, Socket, type TcpNetConnectOpts } from 'node:net';
import { type ConnectionOptions, connect as connectOverTls, TLSSocket } from 'node:tls';
import { systemCodeOf } from '../errors.ts';
import { type Clock, systemClock } from '../time/clock.ts';
import { serverNameOf } from './address.ts';
import { ownLookup } from './lookups.ts';

/** Node tries each address for this long if the race cannot be run. */
const NODE_ATTEMPT_MS = 1000;

interface Destination {
  readonly host?: string | null | undefined;
  readonly port?: number | string | null | undefined;
  readonly lookup?: LookupFunction | undefined;
  readonly autoSelectFamilyAttemptTimeout?: number | undefined;
}

interface Means {
  readonly clock: Clock;
  readonly takeOver: TakeOver | undefined;
}

const MEANS: Means = { clock: systemClock, takeOver: findTakeOver() };

/** Do not wrap the socket in TLS before it is connected. */
export function connectTcp(options: TcpNetConnectOpts, means: Means = MEANS): Socket {
  return raced(options, connect, means);
}

export function connectTls(options: ConnectionOptions, means: Means = MEANS): TLSSocket {
  const named = { ...options, servername: serverNameOf(options.servername ?? options.host ?? '') };
  return named.socket === undefined ? raced(named, connectOverTls, means) : connectOverTls(named);
}

export function byTheRules<A extends Agent>(agent: A): A {
  const make = agent.createConnection.bind(agent);
  agent.createConnection = (options) => {
    const { servername, host } = options as ConnectionOptions;
    const named = { ...options, servername: serverNameOf(servername || host || '') };
    return raced(named as Destination, (destination) => make(destination) as Socket, MEANS);
  };
  return agent;
}

/** @param make begins the connection, and has Node look up its name. */
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
          end = () => {};
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
    // Explicit, so that NODE_OPTIONS cannot turn it off.
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: attemptMs,
  });
  socket.once('close', () => end());
  return socket;
}

const MAX_ADDRESSES = 8;

/** The families in turn, beginning with the first address's (RFC 8305 §4). */
export function addressesInTurn(found: readonly LookupAddress[]): readonly LookupAddress[] {
  const distinct = found.filter(
    ({ address }, index) => found.findIndex((other) => other.address === address) === index,
  );
  const first = distinct.filter(({ family }) => family === distinct[0]?.family);
  const second = distinct.filter(({ family }) => family !== distinct[0]?.family);
  const longer = Math.max(first.length, second.length);
  return Array.from({ length: longer }, (_, index) => [first[index], second[index]])
    .flat()
    .filter((address) => address !== undefined)
    .slice(0, MAX_ADDRESSES);
}

/** The Connection Attempt Delay of RFC 8305 §5. */
const ATTEMPT_DELAY_MS = 250;

interface RaceOptions {
  /** At least one, in order. */
  readonly addresses: readonly LookupAddress[];
  readonly delayMs: number;
  readonly connect: (address: LookupAddress) => Socket;
  readonly clock: Clock;
  /** Called in the `connect` event, before anything is read. */
  readonly onWon: (winner: Socket, address: LookupAddress) => void;
  readonly onLost: (error: Error) => void;
}

/**
 * The next attempt joins after the delay, or after a failure at once (RFC 8305 §5).
 * @returns gives up every attempt.
 */
export function race({ addresses, delayMs, connect, clock, onWon, onLost }: RaceOptions): () => void {
  const attempts = new Set<Socket>();
  const errors: Error[] = [];
  let next = 0;
  let cancelNext = (): void => {};

  function end(): void {
    cancelNext();
    next = addresses.length;
    for (const attempt of attempts) attempt.destroy();
    attempts.clear();
  }

  function begin(): void {
    cancelNext();
    const address = addresses[next++];
    if (address === undefined) return;
    const attempt = connect(address);
    attempts.add(attempt);
    attempt.once('connect', () => {
      attempts.delete(attempt);
      end();
      onWon(attempt, address);
    });
    attempt.on('error', (error) => {
      // An attempt that was given up.
      if (!attempts.delete(attempt)) return;
      errors.push(error);
      if (next < addresses.length) begin();
      else if (attempts.size === 0) onLost(allOf(errors));
    });
    if (next < addresses.length) cancelNext = clock.after(delayMs, begin);
  }

  begin();
  return end;
}

/** With the code of the first, as in Node. */
function allOf(errors: readonly Error[]): Error {
  const reasons = errors.map(({ message }) => message).join('; ');
  return Object.assign(new AggregateError(errors, reasons), { code: systemCodeOf(errors[0]) });
}

// Node can begin a connection anew within a socket, but only by an inner symbol and handle.

interface ConnectRequest {
  oncomplete(
    status: number,
    handle: Handle,
    request: ConnectRequest,
    readable: boolean,
    writable: boolean,
  ): void;
}

interface Handle {
  connect(request: ConnectRequest): number;
  connect6(request: ConnectRequest): number;
  enableSessionCallbacks?(): void;
}

interface Parts {
  _handle: Handle | null;
  ssl?: Handle | null;
}

/** Gives `winner`'s connection, still unread, to `socket`, which waits for an address. */
type TakeOver = (socket: Socket, winner: Socket) => void;

/** Undefined on a Node that keeps its parts elsewhere. */
export function findTakeOver(prototype: object = Socket.prototype): TakeOver | undefined {
  const symbol = Object.getOwnPropertySymbols(prototype).find(
    ({ description }) => description === 'kReinitializeHandle',
  );
  return symbol === undefined ? undefined : (socket, winner) => takeOver(socket, winner, symbol);
}

function takeOver(socket: Socket, winner: Socket, reinitialize: symbol): void {
  const { _handle: handle } = winner as unknown as { _handle: Handle };
  (winner as unknown as Parts)._handle = null;
  winner.destroy();
  const parts = socket as unknown as Parts;
  const connected = (request: ConnectRequest): number => {
    process.nextTick(() => {
      if (parts._handle !== null) request.oncomplete(0, parts._handle, request, true, true);
    });
    return 0;
  };
  handle.connect = connected;
  handle.connect6 = connected;
  (socket as unknown as Record<symbol, (handle: Handle) => void>)[reinitialize]?.(handle);
  if (socket instanceof TLSSocket) keepTls(socket, parts);
}

/** Node forgets these when it begins anew. */
function keepTls(socket: TLSSocket, parts: Parts): void {
  // It ends with the connection, not at garbage collection.
  parts.ssl = parts._handle;
  if (socket.listenerCount('session') > 0) parts._handle?.enableSessionCallbacks?.();
}
