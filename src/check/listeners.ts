/** The addresses that the sidecar listens on: free, taken by the sidecar beside which this runs, or by a stranger. */

import { type Holder, holderOf, nameOf, refusalOf } from '../address-conflicts.ts';
import type { Config, ListenAddress } from '../config/config.ts';
import { formatAddress, reachableAddress } from '../config/values.ts';
import type { Examination } from './examination.ts';
import { about, type Finding } from './finding.ts';
import { askStatus } from './sidecar-status.ts';

export async function examineListeners(
  { listen, admin, tokenEndpoint }: Config,
  examination: Examination,
): Promise<Finding[]> {
  const listeners: readonly (readonly [string, ListenAddress])[] = [
    ['proxy', listen],
    ['admin', admin.listen],
    ...(tokenEndpoint === undefined ? [] : [['token endpoint', tokenEndpoint.listen] as const]),
  ];
  const findings: Finding[] = [];
  // One at a time: two of them may be told the same port by mistake.
  for (const [name, address] of listeners) {
    findings.push(await examineListener(name, address, admin.listen, examination));
  }
  return findings;
}

async function examineListener(
  name: string,
  address: ListenAddress,
  admin: ListenAddress,
  examination: Examination,
): Promise<Finding> {
  const of = about(name);
  const where = formatAddress(address);
  if (address.port === 0) return of.ok('listener', `${where}: the system picks a port`);
  // Where the sidecar is seen to listen its address is not tried, so that one that restarts now finds it free.
  const holder = await holderOf(address.port, examination.signal);
  const ours = of.ok('listener', `${where}: the sidecar listens there`);
  if (holder !== undefined && (await isSidecar(holder, admin, examination))) return ours;
  const code = await refusalOf(address);
  if (code === undefined) return of.ok('listener', `${where} is free`);
  if (code !== 'EADDRINUSE') {
    const remedy = 'choose an address of this machine, and a port of at least 1024';
    return of.failure('listener', 'configuration', `${where}: ${code}`, remedy);
  }
  if (holder === undefined && (await isSidecar(undefined, admin, examination))) return ours;
  const who = holder === undefined ? 'another program' : nameOf(holder);
  const detail = `${where}: ${who} listens there`;
  return of.failure('listener', 'configuration', detail, 'end that program, or choose another port');
}

/** By its command line; where the process is hidden, by what its admin listener says. */
async function isSidecar(
  holder: Holder | undefined,
  admin: ListenAddress,
  examination: Examination,
): Promise<boolean> {
  if (holder === undefined) return 'status' in (await askStatus(reachableAddress(admin), examination));
  const [, command = ''] =
    /(?:^|[ /])(?:main\.ts|token-sidecar(?:\.js)?)(?: (\S+))?(?: |$)/.exec(holder.commandLine) ?? [];
  const isProgram = /(?:^|[ /])(?:main\.ts|token-sidecar(?:\.js)?)(?: |$)/.test(holder.commandLine);
  return isProgram && (command === '' || command === 'proxy' || command.startsWith('-'));
}
