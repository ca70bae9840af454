import type { Server, Socket } from 'node:net';
import type { Logger } from '../platform/log/logger.ts';
import { networkOf } from './attempt-limits.ts';

interface ConnectionBound {
  /** A complete request is being answered: the connection is not given up meanwhile. */
  begun(socket: Socket): void;
  answered(socket: Socket): void;
  /** Closes the connections on which nothing has come yet. */
  closeUnused(): void;
}

interface Connection {
  readonly socket: Socket;
  readonly network: string;
  /** Requests being answered. */
  requests: number;
}

interface ConnectionBoundOptions {
  /** At a time. */
  readonly most: number;
  /** Called for each connection that is given up. */
  readonly onDisplaced: () => void;
  readonly log: Pick<Logger, 'warn'>;
}

/**
 * Limits a server to `most` connections. A further one replaces the one longest without an answer, at the address with
 * the most: a flood displaces its own connections. One with an answer under way is given up only if all at that address
 * have one, and only for a newcomer from an address with fewer.
 */
export function boundConnections(
  server: Server,
  { most, onDisplaced, log }: ConnectionBoundOptions,
): ConnectionBound {
  const known = new Map<Socket, Connection>();
  /** By network, the one longest without an answer first. */
  const networks = new Map<string, Set<Connection>>();

  function enter(connection: Connection): void {
    const neighbours = networks.get(connection.network) ?? new Set();
    networks.set(connection.network, neighbours.add(connection));
  }

  function leave(connection: Connection): void {
    const neighbours = networks.get(connection.network);
    neighbours?.delete(connection);
    if (neighbours?.size === 0) networks.delete(connection.network);
  }

  function forget(connection: Connection): void {
    // Called twice for one that is given up: then, and when it has closed.
    if (!known.delete(connection.socket)) return;
    leave(connection);
  }

  function giveUpOne(newcomer: Connection): void {
    let fullest: ReadonlySet<Connection> = new Set();
    for (const neighbours of networks.values()) if (neighbours.size > fullest.size) fullest = neighbours;
    const own = networks.get(newcomer.network)?.size ?? 0;
    const [oldest = newcomer] = fullest;
    const given = firstIdle(fullest) ?? (fullest.size > own ? oldest : firstIdleAnywhere()) ?? newcomer;
    onDisplaced();
    log.warn({ address: given.network }, 'a connection was ended: there are too many');
    forget(given);
    given.socket.destroy();
  }

  function firstIdleAnywhere(): Connection | undefined {
    for (const neighbours of networks.values()) {
      const idle = firstIdle(neighbours);
      if (idle !== undefined) return idle;
    }
    return undefined;
  }

  server.on('connection', (socket) => {
    const connection = { socket, network: networkOf(String(socket.remoteAddress)), requests: 0 };
    known.set(socket, connection);
    enter(connection);
    socket.once('close', () => forget(connection));
    if (known.size > most) giveUpOne(connection);
  });

  return {
    begun(socket) {
      const connection = known.get(socket);
      if (connection !== undefined) connection.requests++;
    },
    answered(socket) {
      const connection = known.get(socket);
      if (connection === undefined) return;
      connection.requests--;
      leave(connection);
      enter(connection);
    },
    closeUnused() {
      for (const { socket } of known.values()) if (socket.bytesRead === 0) socket.destroy();
    },
  };
}

function firstIdle(connections: Iterable<Connection>): Connection | undefined {
  for (const connection of connections) if (connection.requests === 0) return connection;
  return undefined;
}
