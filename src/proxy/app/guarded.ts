import type { Socket } from 'node:net';
import type { Logger } from '../../platform/log/logger.ts';
import { asProxyError, logFailure } from '../proxy-error.ts';

/**
 * Tells a connection what happened to it. `tell` does not throw; should it, that is a fault of this program, which
 * costs only that connection and its requests: not the process, nor the requests of others.
 */
export function guarded(socket: Socket, log: Logger, tell: () => void): void {
  try {
    tell();
  } catch (error) {
    logFailure(log, 'none', asProxyError(error));
    socket.destroy();
  }
}
