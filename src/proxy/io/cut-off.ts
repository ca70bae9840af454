import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

/** Ends a connection amid what was written: by a reset, because a clean end would say that this is all. */
export function cutOff(socket: Socket): void {
  // Without its close_notify, which says the same (RFC 8446 §6.1).
  if (socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}

/** Ends a connection at once, cleanly only if the system has taken all that was written. */
export function dropConnection(socket: Socket): void {
  if (socket.writableLength > 0) cutOff(socket);
  else socket.destroy();
}
