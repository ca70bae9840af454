import { Socket } from 'node:net';
import type { RawClient } from './raw-client.ts';

/** The sidecar's end of the client's connection: what keeps an answer from leaving is a matter of the system's buffers. */
export function socketOfSidecar(client: RawClient): Socket {
  const { _getActiveHandles: handles } = process as unknown as { _getActiveHandles(): unknown[] };
  const found = handles
    .call(process)
    .find((handle) => handle instanceof Socket && handle.remotePort === client.socket.localPort);
  if (found === undefined) throw new Error('the sidecar has no such connection');
  return found as Socket;
}
