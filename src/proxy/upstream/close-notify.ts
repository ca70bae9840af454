import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { TLSSocket } from 'node:tls';
import type { ProxyErrorCode, SidecarError } from '../../platform/errors.ts';

/**
 * How an upstream's bytes ended: `said` by the upstream; `cut` by anyone on the path (a FIN over TLS without
 * close_notify, RFC 8446 §6.1); or broken.
 */
export type StreamEnd = 'said' | 'cut' | SidecarError<ProxyErrorCode>;

interface TlsHandle {
  readonly _parent?: { readStart?(): number };
}

/** TLS inside a stream: Node does not know its TCP connection, so its creator says how to ask. */
const INSIDE_OF_STREAMS = new WeakMap<Socket, () => boolean>();

/** @param said whether the upstream itself has ended; asked during the socket's `end`. */
export function tellEnd(socket: Socket, said: () => boolean): void {
  INSIDE_OF_STREAMS.set(socket, said);
}

/**
 * Whether the upstream itself has ended; ask during the socket's `end`. Node does not tell, but refuses to
 * start reading the TCP connection only after close_notify, when it is still being read. A paused connection
 * sees no FIN, so only close_notify can have ended it. If Node has no `_parent`, every end is `said`.
 */
export function wasSaid(socket: Socket): boolean {
  const said = INSIDE_OF_STREAMS.get(socket);
  if (said !== undefined) return said();
  if (!(socket instanceof TLSSocket) || socket.isPaused()) return true;
  const { _handle: handle } = socket as unknown as { _handle?: TlsHandle | null };
  const parent = handle?._parent;
  return parent?.readStart === undefined || parent.readStart() === -constants.errno.EALREADY;
}
