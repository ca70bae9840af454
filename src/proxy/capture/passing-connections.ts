import type { Socket } from 'node:net';
import { SidecarError } from '../../errors.ts';

/**
 * The connections to where apps were going. One of them that is itself redirected comes back, and would be passed on for ever:
 * the system exempts another user than this program's.
 */
export class PassingConnections {
  /** Their ends here. Who accepts one that was redirected sees that as its peer. */
  readonly #ends = new Set<string>();

  /** One that stands. */
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
