import { BlockList, isIP } from 'node:net';
import type { EgressProxyConfig } from '../../config/config.ts';
import { isLoopbackHost } from '../../platform/net/address.ts';

/**
 * Whether connections to a host go through the proxy: all do, except to this machine and to what `noProxy` names (the
 * name itself, `.suffix` for every name below it, an address, or a CIDR range). Names are not resolved for this.
 * @param host a name or address as dialled; IPv6 without brackets.
 */
export function goesThrough({ noProxy }: Pick<EgressProxyConfig, 'noProxy'>, host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, '');
  return !isLoopbackHost(name) && !noProxy.some((entry) => isNamedBy(entry, name));
}

function isNamedBy(entry: string, host: string): boolean {
  const family = isIP(host);
  if (family === 0) return entry.startsWith('.') ? host.endsWith(entry) && host !== entry : host === entry;
  const [address = '', prefix] = entry.split('/');
  if (isIP(address) !== family) return false;
  const type = family === 6 ? 'ipv6' : 'ipv4';
  const list = new BlockList();
  list.addSubnet(address, prefix === undefined ? (family === 6 ? 128 : 32) : Number(prefix), type);
  return list.check(host, type);
}
