/** Whether a service mesh takes the same connections. */

import { readFileSync } from 'node:fs';
import { SidecarError, systemCodeOf } from '../../platform/errors.ts';
import { cFunctions } from './c-functions.ts';
import { FLAGS, type Message, NFT, native, nftMessage, readNative32, textIn } from './netlink-message.ts';

const TABLE_NAME = 1;
const CHAIN_NAME = 3;

const MESHES: readonly (readonly [mesh: string, names: RegExp])[] = [
  ['Istio', /^(?:ISTIO_|istio)/],
  ['Linkerd', /^(?:PROXY_INIT_|linkerd)/],
];

/** Usually including those of iptables. */
export const ALL_CHAINS: Message = nftMessage(NFT.getChain, FLAGS.request | FLAGS.dump, 0, 'to list chains');

export function meshOfChains(chains: readonly { readonly body: Buffer }[]): string | undefined {
  return meshOfNames(chains.flatMap(({ body }) => [textIn(body, TABLE_NAME), textIn(body, CHAIN_NAME)]));
}

export function meshOfNames(names: readonly (string | undefined)[]): string | undefined {
  return MESHES.find(([, known]) => names.some((name) => name !== undefined && known.test(name)))?.[0];
}

// nftables does not list the older iptables' chains (linux/netfilter_ipv4/ip_tables.h).

/** Of this network namespace. */
const TABLES = '/proc/self/net/ip_tables_names';
const NAT = 'nat';

const AF_INET = 2;
const SOCK_DGRAM = 2;
const SOL_IP = 0;
const IPT_SO_GET_INFO = 64;
const IPT_SO_GET_ENTRIES = 65;

/** `ipt_getinfo`: a name of 32 octets, eleven numbers, the number of entries, their size. */
const INFO_BYTES = 84;
const SIZE_OFFSET = 80;
const NAME_BYTES = 32;
/** `ipt_get_entries`: name and size, padded. */
const ENTRIES_HEAD_BYTES = 40;

/** More than any mesh installs. */
const MAX_BYTES = 16 * 1024 * 1024;

/**
 * Empty if there is no nat table.
 * @throws {SidecarError} `configuration` if it cannot be read.
 */
export function legacyNatChains(): readonly string[] {
  if (!hasNatTable()) return [];
  const { socket, getsockopt, close } = cFunctions(
    {
      socket: { arguments: ['i32', 'i32', 'i32'], return: 'i32' },
      getsockopt: { arguments: ['i32', 'i32', 'i32', 'buffer', 'buffer'], return: 'i32' },
      close: { arguments: ['i32'], return: 'i32' },
    },
    'redirect',
  );
  const fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) throw unreadable();
  try {
    const info = named(INFO_BYTES);
    if (getsockopt(fd, SOL_IP, IPT_SO_GET_INFO, info, native.number32(info.length)) !== 0) throw unreadable();
    const bytes = readNative32(info, SIZE_OFFSET);
    if (bytes > MAX_BYTES) throw unreadable();
    const entries = named(ENTRIES_HEAD_BYTES + bytes);
    native.number32(bytes).copy(entries, NAME_BYTES);
    if (getsockopt(fd, SOL_IP, IPT_SO_GET_ENTRIES, entries, native.number32(entries.length)) !== 0) {
      throw unreadable();
    }
    // Such an entry holds the chain's name of at most 29 octets.
    return [...entries.toString('latin1').matchAll(/[A-Za-z][A-Za-z0-9_-]{2,28}/g)].map(([name]) => name);
  } finally {
    close(fd);
  }
}

function unreadable(): SidecarError {
  return new SidecarError(
    'configuration',
    `redirect: the table ${NAT} of iptables cannot be read, which may be that of a service mesh: expected the capability NET_ADMIN`,
  );
}

function named(bytes: number): Buffer {
  const structure = Buffer.alloc(bytes);
  structure.write(NAT, 'latin1');
  return structure;
}

function hasNatTable(): boolean {
  try {
    return readFileSync(TABLES, 'latin1').split('\n').includes(NAT);
  } catch (error) {
    // A kernel without iptables.
    if (systemCodeOf(error) === 'ENOENT') return false;
    throw error;
  }
}
