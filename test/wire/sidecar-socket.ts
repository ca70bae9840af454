import { Socket } from 'node:net';
import { until } from '../support/until.ts';

/** Whoever holds the app's end of a connection. */
interface Client {
  readonly socket: Socket;
}

/** The sidecar's end of the client's connection: what keeps an answer from leaving is a matter of the system's buffers. */
export function socketOfSidecar(client: Client): Socket {
  const found = acceptedFrom(client);
  if (found === undefined) throw new Error('the sidecar has no such connection');
  return found;
}

/** Resolves when the sidecar has accepted the client's connection and read all that was sent on it, which takes the kernel its time. */
export async function readBySidecar(client: Client): Promise<void> {
  await until(() => acceptedFrom(client)?.bytesRead === client.socket.bytesWritten);
}

function acceptedFrom({ socket }: Client): Socket | undefined {
  const { _getActiveHandles: handles } = process as unknown as { _getActiveHandles(): unknown[] };
  const found = handles
    .call(process)
    .find((handle) => handle instanceof Socket && handle.remotePort === socket.localPort);
  return found as Socket | undefined;
}
