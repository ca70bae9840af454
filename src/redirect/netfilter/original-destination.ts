/** SO_ORIGINAL_DST (linux/netfilter_ipv4.h, linux/netfilter_ipv6/ip6_tables.h). */

import type { Socket } from 'node:net';
import type { ListenAddress } from '../../platform/net/address.ts';
import { cFunctions } from './c-functions.ts';
import { native } from './netlink-message.ts';

const SOL_IP = 0;
const SOL_IPV6 = 41;
/** The same number for both families. */
const SO_ORIGINAL_DST = 80;

/** The size of `sockaddr_in6`, the larger one. */
const ADDRESS_BYTES = 28;
const IPV4_BYTES = 16;

/**
 * Undefined if the kernel knows none, such as for a direct connection.
 * @throws {SidecarError} `configuration` if the kernel cannot be asked.
 */
export function openOriginalDestination(): (accepted: Socket) => ListenAddress | undefined {
  const { getsockopt } = cFunctions(
    { getsockopt: { arguments: ['i32', 'i32', 'i32', 'buffer', 'buffer'], return: 'i32' } },
    'redirect',
  );
  const address = Buffer.alloc(ADDRESS_BYTES);
  const length = Buffer.alloc(4);
  return (accepted) => {
    const fd = descriptorOf(accepted);
    if (fd === undefined) return undefined;
    const isIpv6 = accepted.remoteFamily === 'IPv6';
    address.fill(0);
    native.number32(isIpv6 ? ADDRESS_BYTES : IPV4_BYTES).copy(length);
    const failed = getsockopt(fd, isIpv6 ? SOL_IPV6 : SOL_IP, SO_ORIGINAL_DST, address, length) !== 0;
    return failed ? undefined : readAddress(address, isIpv6 ? 6 : 4);
  };
}

/** Family, port in network order, for IPv6 the flow, then the address. */
export function readAddress(address: Buffer, family: 4 | 6): ListenAddress {
  const port = address.readUInt16BE(2);
  if (family === 4) return { host: [...address.subarray(4, 8)].join('.'), port };
  const groups = Array.from({ length: 8 }, (_, index) => address.readUInt16BE(8 + 2 * index).toString(16));
  // RFC 5952, so that it can be compared.
  return { host: new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1), port };
}

/** Undefined if the connection is gone. Node has no public name for it. */
function descriptorOf(socket: Socket): number | undefined {
  const fd = (socket as unknown as { _handle?: { fd?: number } | null })._handle?.fd;
  return fd === undefined || fd < 0 ? undefined : fd;
}
