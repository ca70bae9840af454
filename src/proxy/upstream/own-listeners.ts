/** The forward proxy does not reach the program's own listeners for apps. */

import type { Socket } from 'node:net';
import { type ProxyErrorCode, SidecarError } from '../../platform/errors.ts';
import { formatAddress, isLoopbackHost, type ListenAddress } from '../../platform/net/address.ts';

export interface ConnectGuard {
  refusal(made: Socket): SidecarError<ProxyErrorCode> | undefined;
}

/**
 * Loopback listeners trust everyone there, the forward proxy included. Judged by where a connection led,
 * since names and 0.0.0.0 lead here too.
 */
export class OwnListeners implements ConnectGuard {
  readonly #ports = new Set<number>();

  add({ port }: ListenAddress): void {
    this.#ports.add(port);
  }

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

/** A captured host found there would make the program ask itself. */
export class CapturedAddresses implements ConnectGuard {
  readonly #addresses = new Set<string>();

  add(address: ListenAddress): void {
    this.#addresses.add(formatAddress(address));
  }

  refusal({ remoteAddress = '', remotePort = 0 }: Socket): SidecarError<'loop_detected'> | undefined {
    const led = formatAddress({ host: remoteAddress.replace(/^::ffff:/, ''), port: remotePort });
    if (!this.#addresses.has(led)) return undefined;
    return new SidecarError(
      'loop_detected',
      `DNS sends this host to ${led}, where the sidecar listens in the place of a host`,
    );
  }
}
