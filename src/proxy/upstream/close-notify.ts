import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { TLSSocket } from 'node:tls';
import type { ProxyErrorCode, SidecarError } from '../../platform/errors.ts';

/**
 * How an upstream's bytes ended: `said` by the upstream, `cut` by anyone on the path (TCP's FIN on a TLS connection
 * without close_notify, RFC 8446 §6.1), or broken.
 */
export type StreamEnd = 'said' | 'cut' | SidecarError<ProxyErrorCode>;

interface TlsHandle {
  /** Of the TCP connection beneath. */
  readonly _parent?: { readStart?(): number };
}

/** TLS inside a stream, whose TCP connection Node does not know: its creator says how to ask. */
const INSIDE_OF_STREAMS = new WeakMap<Socket, () => boolean>();

/** @param said whether the upstream itself has ended; asked during the socket's `end`. */
export function tellEnd(socket: Socket, said: () => boolean): void {
  INSIDE_OF_STREAMS.set(socket, said);
}

/**
 * Whether the upstream itself has ended; asked during the socket's `end`. OpenSSL knows, and Node does not tell. It
 * shows in what was being read: after close_notify the TCP connection is still read, so that starting to read it is
 * refused; after a mere FIN it is not. A paused connection is not read, so that no FIN was seen: only close_notify,
 * deciphered with what came before the pause, can have ended it. On a Node that keeps its connections elsewhere every
 * end passes for `said`.
 */
export function wasSaid(socket: Socket): boolean {
  const said = INSIDE_OF_STREAMS.get(socket);
  if (said !== undefined) return said();
  if (!(socket instanceof TLSSocket) || socket.isPaused()) return true;
  const { _handle: handle } = socket as unknown as { _handle?: TlsHandle | null };
  const parent = handle?._parent;
  return parent?.readStart === undefined || parent.readStart() === -constants.errno.EALREADY;
}
