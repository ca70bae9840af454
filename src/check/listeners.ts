/** The addresses that the sidecar listens on: free, held by the sidecar in question, or by another program. */

import { commandOf, type Holder, holderOf, nameOf, refusalOf } from '../config/address-conflicts.ts';
import type { Config } from '../config/config.ts';
import { type SidecarListener, sidecarListeners, WITHOUT_FAMILY } from '../config/sidecar-listeners.ts';
import { formatAddress, reachableAddress } from '../platform/net/address.ts';
import type { Examination } from './examination.ts';
import { about, type Finding } from './finding.ts';
import { askStatus } from './sidecar-status.ts';

export async function examineListeners(config: Config, examination: Examination): Promise<Finding[]> {
  const findings: Finding[] = [];
  // One at a time: two of them may be configured with the same port by mistake.
  for (const listener of sidecarListeners(config)) {
    findings.push(await examineListener(listener, config, examination));
  }
  return findings;
}

async function examineListener(
  { what, address, mayLack }: SidecarListener,
  config: Config,
  examination: Examination,
): Promise<Finding> {
  const of = about(what);
  const where = formatAddress(address);
  if (address.port === 0) return of.ok('listener', `${where}: the system picks a port`);
  // An address where the sidecar is seen to listen is not tried, so that it stays free if the sidecar restarts now.
  const holder = await holderOf(address, examination.signal);
  const ours = of.ok('listener', `${where}: the sidecar listens there`);
  if (holder !== undefined && (await isSidecar(holder, config, examination))) return ours;
  const code = await refusalOf(address);
  if (code === undefined) return of.ok('listener', `${where} is free`);
  if (mayLack && WITHOUT_FAMILY.has(code)) {
    return of.ok('listener', `${where}: this machine has none, and the sidecar starts without it`);
  }
  if (code !== 'EADDRINUSE') {
    const remedy =
      code === 'EACCES' && address.port < 1024
        ? 'choose a port of at least 1024, or let the pod have the sysctl net.ipv4.ip_unprivileged_port_start: "0"'
        : 'choose an address of this machine, and a port of at least 1024';
    return of.failure('listener', 'configuration', `${where}: ${code}`, remedy);
  }
  if (holder === undefined && (await isSidecar(undefined, config, examination))) return ours;
  const who = holder === undefined ? 'another program' : nameOf(holder);
  const detail = `${where}: ${who} listens there`;
  return of.failure('listener', 'configuration', detail, 'end that program, or choose another port');
}

/** By its command line; if the process is hidden, by its admin listener's answer. */
async function isSidecar(
  holder: Holder | undefined,
  { admin, gateway }: Config,
  examination: Examination,
): Promise<boolean> {
  if (holder === undefined) return 'status' in (await askStatus(reachableAddress(admin.listen), examination));
  return commandOf(holder) === (gateway === undefined ? 'proxy' : 'gateway');
}
