/** How the kernel's tables of sockets write addresses (proc_pid_net(5)). */

import { isIPv4 } from 'node:net';
import { endianness } from 'node:os';

/** `::ffff:0:0/96`, the form of IPv4 addresses on a socket for both families. */
export const MAPPED: readonly number[] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

const LITTLE_ENDIAN = endianness() === 'LE';

/** The octets of an address as Node writes it; a mapped address gives those of IPv4. */
export function octetsOf(address: string): number[] {
  if (isIPv4(address)) return address.split('.').map(Number);
  const plain = address.replace(/%.*$/, '').replace(/[\d.]+\.\d+$/, (ipv4) => {
    const [a = 0, b = 0, c = 0, d = 0] = ipv4.split('.').map(Number);
    return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  });
  const [front = [], back] = plain.split('::').map((half) => (half === '' ? [] : half.split(':')));
  const zeros = back === undefined ? [] : new Array(8 - front.length - back.length).fill('0');
  const octets = [...front, ...zeros, ...(back ?? [])].flatMap((group) => {
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
  const mapped = MAPPED.every((octet, index) => octets[index] === octet);
  return mapped ? octets.slice(MAPPED.length) : octets;
}

/** The kernel prints addresses as 32-bit numbers in the machine's own byte order. */
export function inHex(octets: readonly number[]): string {
  let hex = '';
  for (let at = 0; at < octets.length; at += 4) {
    const word = octets.slice(at, at + 4);
    if (LITTLE_ENDIAN) word.reverse();
    hex += Buffer.from(word).toString('hex').toUpperCase();
  }
  return hex;
}
