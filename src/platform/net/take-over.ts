/**
 * Node can begin a connection anew within a socket, to try another address, but has no way to say so from outside. Its
 * own way is used here: the symbol that names the method, and the handle that the method takes.
 */

import { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

/** What is asked of a handle to connect. */
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
  /** Of TLS. */
  enableSessionCallbacks?(): void;
}

interface Parts {
  _handle: Handle | null;
  ssl?: Handle | null;
}

/**
 * Gives the connection of `winner`, which has just been made and is not read yet, to `socket`, which still waits for an
 * address: as soon as it is told one, it is connected.
 */
export type TakeOver = (socket: Socket, winner: Socket) => void;

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

/** What Node forgets of TLS when it begins anew. */
function keepTls(socket: TLSSocket, parts: Parts): void {
  // It ends with the connection, and not when it is collected.
  parts.ssl = parts._handle;
  if (socket.listenerCount('session') > 0) parts._handle?.enableSessionCallbacks?.();
}
