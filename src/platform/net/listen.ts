import type { Server as HttpServer, IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { SidecarError, systemCodeOf } from '../errors.ts';
import type { Clock } from '../time/clock.ts';
import { EVERY_ADDRESS, formatAddress, type ListenAddress } from './address.ts';

/** Linux's default. Beyond it, a caller retries after a second or more. */
const MAX_WAITING = 4096;

/**
 * @param what names the listener in the error.
 * @returns the address, with the port that the system picked for 0.
 * @throws {SidecarError} `configuration` if the address cannot be had.
 */
export async function listenOn(server: Server, listen: ListenAddress, what: string): Promise<ListenAddress> {
  await new Promise<void>((resolve, reject) => {
    const onError = (error: Error): void => {
      const why = systemCodeOf(error) ?? error.message;
      const message = `${what}: cannot listen on ${formatAddress(listen)}: ${why}`;
      reject(new SidecarError('configuration', message, { cause: error }));
    };
    server.once('error', onError);
    // Naming `::` fails on a machine without IPv6.
    const host = listen.host === EVERY_ADDRESS ? {} : { host: listen.host };
    server.listen({ ...host, port: listen.port, backlog: MAX_WAITING }, () => {
      server.off('error', onError);
      resolve();
    });
  });
  return { host: listen.host, port: (server.address() as AddressInfo).port };
}

/** Ends the connections, too. */
export function closeAtOnce(server: HttpServer): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/** `aborted` if the caller leaves. Never rejects. */
export function readBody(
  request: IncomingMessage,
  maxBytes: number,
): Promise<Buffer | 'too_large' | 'aborted'> {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) return Promise.resolve('too_large');
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const keep = (chunk: Buffer): void => {
      bytes += chunk.length;
      chunks.push(chunk);
      if (bytes <= maxBytes) return;
      request.off('data', keep);
      request.pause();
      resolve('too_large');
    };
    request.on('data', keep);
    request.once('end', () => resolve(Buffer.concat(chunks)));
    request.once('error', () => resolve('aborted'));
    request.once('close', () => resolve('aborted'));
  });
}

/** Ends the connection unless the whole answer has left in time. Node's timeouts spare a slow reader. */
export function enforceResponseTimeout(response: ServerResponse, withinMs: number, clock: Clock): void {
  // The response lets go of its socket when it ends.
  const { socket } = response.req;
  response.once(
    'close',
    clock.after(withinMs, () => socket.destroy()),
  );
}

/** Shows that a request has come back (docs/decisions/0003). */
export const HOP_FIELD = 'token-sidecar-hop';
