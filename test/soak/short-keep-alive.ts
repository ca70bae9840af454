import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';

const MIN_MS = 5;
const MAX_MS = 50;

/** How many of the answers say that the connection is kept for a second. */
const SAYING_SO = 0.1;

/** Makes a server close connections that have carried no request for a few milliseconds, each after another time. */
export function closeIdleSoon(server: Server | TlsServer): void {
  const timers = new WeakMap<Socket, NodeJS.Timeout>();
  const latest = new WeakMap<Socket, IncomingMessage>();
  const served = (request: IncomingMessage, response: ServerResponse): void => {
    const { socket } = request;
    latest.set(socket, request);
    clearTimeout(timers.get(socket));
    if (Math.random() < SAYING_SO) response.setHeader('Keep-Alive', 'timeout=1');
    response.once('finish', () => {
      // The next request may have come before this was told.
      if (latest.get(socket) !== request) return;
      const afterMs = MIN_MS + Math.random() * (MAX_MS - MIN_MS);
      timers.set(
        socket,
        setTimeout(() => socket.end(), afterMs),
      );
    });
  };
  server.keepAliveTimeout = 0;
  server.on('request', served);
  server.on('checkContinue', served);
  server.on('upgrade', (request: IncomingMessage) => {
    latest.set(request.socket, request);
    clearTimeout(timers.get(request.socket));
  });
}
