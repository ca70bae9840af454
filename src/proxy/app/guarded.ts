import type { Socket } from 'node:net';
import type { Logger } from '../../log/logger.ts';
import { asProxyError, logFailure } from '../proxy-error.ts';

/**
 * Tells a connection what happened to it. Nothing is thrown by it; should something be, it is a fault of this program,
 * and what it costs is that connection, with whatever it asked: not the process, nor the requests of others.
 */
export function guarded(socket: Socket, log: Logger, tell: () => void): void {
  try {
    tell();
  } catch (error) {
    logFailure(log, 'none', asProxyError(error));
    socket.destroy();
  }
}
