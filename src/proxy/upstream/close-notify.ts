import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { TLSSocket } from 'node:tls';
import type { ProxyErrorCode, SidecarError } from '../../platform/errors.ts';

/** `cut` by anyone on the path (FIN over TLS without close_notify, RFC 8446 §6.1). */
export type TlsEnd = 'said' | 'cut' | SidecarError<ProxyErrorCode>;

interface TlsHandle {
  readonly _parent?: { readStart?(): number };
}

/** For TLS inside a stream, where Node does not know the TCP connection. */
const INSIDE_OF_STREAMS = new WeakMap<Socket, () => boolean>();

/** @param said is asked during the socket's `end`. */
export function tellEnd(socket: Socket, said: () => boolean): void {
  INSIDE_OF_STREAMS.set(socket, said);
}

/**
 * Whether the upstream itself has ended; ask during the socket's `end`. After close_notify the TCP connection
 * is still read, so starting to read fails. A paused connection sees no FIN. Unknown ends count as `said`.
 */
export function sawCloseNotify(socket: Socket): boolean {
  const said = INSIDE_OF_STREAMS.get(socket);
  if (said !== undefined) return said();
  if (!(socket instanceof TLSSocket) || socket.isPaused()) return true;
  const { _handle: handle } = socket as unknown as { _handle?: TlsHandle | null };
  const parent = handle?._parent;
  return parent?.readStart === undefined || parent.readStart() === -constants.errno.EALREADY;
}
