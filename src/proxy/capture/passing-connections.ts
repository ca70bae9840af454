import type { Socket } from 'node:net';
import { SidecarError } from '../../platform/errors.ts';

/**
 * The connections to where apps were going. One that is itself redirected comes back, and would be passed on forever:
 * the system exempts a user other than this program's.
 */
export class PassingConnections {
  /** Their local addresses; if one is redirected back, the accepting side sees its address as the peer's. */
  readonly #ends = new Set<string>();

  /** Adds an open connection. */
  add(socket: Socket): void {
    const { localAddress, localPort } = socket;
    const end = `${localAddress} ${localPort}`;
    this.#ends.add(end);
    socket.once('close', () => this.#ends.delete(end));
  }

  /** @throws {SidecarError} `loop_detected` where an accepted connection is one of these. */
  assertOthers({ remoteAddress, remotePort }: Socket): void {
    if (!this.#ends.has(`${remoteAddress} ${remotePort}`)) return;
    const user = process.getuid?.();
    throw new SidecarError(
      'loop_detected',
      `a connection of the sidecar itself was redirected to it: \`token-sidecar redirect\` has to exempt its user, by --exempt-user ${user}`,
    );
  }
}
