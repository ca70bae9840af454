/** Where this program itself listens, which is no destination for those who ask its forward proxy for any. */

import type { Socket } from 'node:net';
import type { ListenAddress } from '../../config/config.ts';
import { isLoopbackHost } from '../../config/values.ts';
import { SidecarError } from '../../errors.ts';

/**
 * What listens on loopback trusts whoever comes from there, and through the forward proxy everybody does. It is judged by
 * where a connection has led, since names, and 0.0.0.0, lead here as well.
 */
export class OwnListeners {
  readonly #ports = new Set<number>();

  add({ port }: ListenAddress): void {
    this.#ports.add(port);
  }

  /** Why a connection that has just been made may not be used; undefined where it may. */
  refusal(made: Socket): SidecarError<'destination_not_allowed'> | undefined {
    const { remoteAddress, remotePort, localAddress } = made;
    if (remotePort === undefined || !this.#ports.has(remotePort)) return undefined;
    const address = remoteAddress?.replace(/^::ffff:/, '') ?? '';
    if (!isLoopbackHost(address) && remoteAddress !== localAddress) return undefined;
    return new SidecarError(
      'destination_not_allowed',
      `port ${remotePort} of this machine is the sidecar's own and on no list of hosts`,
    );
  }
}
