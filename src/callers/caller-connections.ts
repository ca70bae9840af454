/** Bounds a listener's connections and shares them fairly among addresses. */

import type { Server } from 'node:https';
import type { Socket } from 'node:net';
import type { Logger } from '../platform/log/logger.ts';
import type { Clock } from '../platform/time/clock.ts';

interface CallerConnections {
  /**
   * Above the bound, the connection longest without a request gives way, at the address with the most. If the
   * newcomer's address ties, an answered one gives way or, without any, the newcomer.
   */
  admit(socket: Socket): void;
  /** Returns false and ends the connection if it is already busy, or if answers wait to be read. */
  begin(socket: Socket): boolean;
  end(socket: Socket): void;
  /** The answer has left, or never will. */
  left(socket: Socket): void;
  secured(socket: Socket): void;
  /** Closes connections on which no byte of a request has come. */
  closeUnused(): void;
  closeAll(): void;
}

interface Connection {
  readonly socket: Socket;
  readonly address: string;
  /** Set after the handshake. */
  secure?: Socket;
  state: 'waiting' | 'busy' | 'answered';
  /** Requests whose answers have not left. */
  unread: number;
}

/** Node may tell late that an answer has left. */
const MAX_UNREAD = 2;

interface CallerConnectionsOptions {
  readonly most: number;
  /** `displaced` gave way; `sent_ahead` had a request too early. */
  readonly onDropped: (reason: 'displaced' | 'sent_ahead') => void;
  readonly log: Pick<Logger, 'warn'>;
}

export function boundCallerConnections({
  most,
  onDropped,
  log,
}: CallerConnectionsOptions): CallerConnections {
  /** The most recently used comes last. */
  const connections = new Map<string, Connection>();

  /** @returns undefined if the new connection itself gives way. */
  function victimOf(newcomer: string): Connection | undefined {
    const held = new Map<string, number>();
    for (const { address } of connections.values()) held.set(address, (held.get(address) ?? 0) + 1);
    const most = Math.max(...held.values());
    const own = held.get(newcomer) ?? 0;
    const all = [...connections.values()];
    if (most === own + 1) {
      return all.find(({ state, address }) => state === 'answered' && held.get(address) === most);
    }
    const candidates = all.filter(({ address }) =>
      most === own ? address === newcomer : held.get(address) === most,
    );
    return candidates.find(({ state }) => state !== 'busy') ?? candidates[0];
  }

  function makeRoom(newcomer: string): boolean {
    if (connections.size < most) return true;
    const victim = victimOf(newcomer);
    onDropped('displaced');
    log.warn({ address: victim?.address ?? newcomer }, 'a connection was ended: there are too many');
    if (victim === undefined) return false;
    connections.delete(keyOf(victim.socket));
    victim.socket.destroy();
    return true;
  }

  function mark(socket: Socket, state: Connection['state']): void {
    const key = keyOf(socket);
    const connection = connections.get(key);
    if (connection === undefined) return;
    connection.state = state;
    connections.delete(key);
    connections.set(key, connection);
  }

  return {
    admit(socket) {
      if (socket.remoteAddress === undefined || !makeRoom(socket.remoteAddress)) {
        socket.destroy();
        return;
      }
      const key = keyOf(socket);
      const connection: Connection = { socket, address: socket.remoteAddress, state: 'waiting', unread: 0 };
      connections.set(key, connection);
      socket.once('close', () => {
        if (connections.get(key) === connection) connections.delete(key);
      });
    },
    begin(socket) {
      const connection = connections.get(keyOf(socket));
      if (connection?.state === 'busy' || connection?.unread === MAX_UNREAD) {
        // Called again for the rest of what was read.
        if (!socket.destroyed) {
          onDropped('sent_ahead');
          log.warn(
            { address: connection.address },
            'a connection was ended: it sent more before it had its answers',
          );
        }
        socket.destroy();
        return false;
      }
      if (connection !== undefined) connection.unread++;
      mark(socket, 'busy');
      return true;
    },
    left(socket) {
      const connection = connections.get(keyOf(socket));
      if (connection !== undefined) connection.unread--;
    },
    end: (socket) => mark(socket, 'answered'),
    secured(socket) {
      const connection = connections.get(keyOf(socket));
      if (connection !== undefined) connection.secure = socket;
    },
    closeUnused() {
      for (const { socket, secure, state } of [...connections.values()]) {
        if (state === 'waiting' && (secure?.bytesRead ?? 0) === 0) socket.destroy();
      }
    },
    closeAll() {
      for (const { socket } of [...connections.values()]) socket.destroy();
    },
  };
}

/** Equal for a TCP socket and its TLS socket. */
function keyOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

interface DrainOptions {
  /** How long to serve on, while Services still send requests. */
  readonly delayMs: number;
  /** For requests in flight. */
  readonly timeoutMs: number;
  /** Whether unused connections are closed after the delay: for callers that then ask elsewhere. */
  readonly closeUnused: boolean;
  readonly clock: Clock;
}

export async function drain(
  server: Server,
  connections: CallerConnections,
  { delayMs, timeoutMs, closeUnused, clock }: DrainOptions,
): Promise<void> {
  await new Promise<void>((resolve) => void clock.after(delayMs, resolve));
  await new Promise<void>((resolve) => {
    const cancel = clock.after(timeoutMs, () => connections.closeAll());
    server.close(() => {
      cancel();
      resolve();
    });
    server.closeIdleConnections();
    // Node considers them busy, and would wait for their requests.
    if (closeUnused) connections.closeUnused();
  });
}
