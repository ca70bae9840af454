import type { Socket } from 'node:net';
import { endianness } from 'node:os';
import { expect, it } from 'vitest';
import { type ReadSocketTables, socketNames } from '../../../src/platform/net/socket-tables.ts';
import { findPeers } from '../../../src/proxy/io/peer-socket.ts';

type TablesRead = Awaited<ReturnType<ReadSocketTables>>;

function accepted(here: string | undefined, there: string | undefined): Socket {
  return { localAddress: here, localPort: 15_080, remoteAddress: there, remotePort: 80 } as Socket;
}

/** As the kernel prints it on this machine, from what it prints on one that counts from the other end. */
function printed(bigEndian: string): string {
  if (endianness() === 'BE') return bigEndian;
  return bigEndian.replace(/[0-9A-F]{8}/g, (word) => word.replace(/(..)(..)(..)(..)/, '$4$3$2$1'));
}

it.each([
  ['127.0.0.1', '10.1.2.3', '0A010203:0050 7F000001:3AE8'],
  ['::1', '::1', `${'0'.repeat(31)}1:0050 ${'0'.repeat(31)}1:3AE8`],
  ['::', 'fe80::1%eth0', `FE80${'0'.repeat(27)}1:0050 ${'0'.repeat(32)}:3AE8`],
  [
    '2001:db8:1:2:3:4:5:6',
    '2001:db8::5:6',
    '20010DB8000000000000000000050006:0050 20010DB8000100020003000400050006:3AE8',
  ],
  ['1:2:3::', '::a:b:c', `${'0'.repeat(20)}000A000B000C:0050 000100020003${'0'.repeat(20)}:3AE8`],
  ['64:ff9b::10.1.2.3', '::1', `${'0'.repeat(31)}1:0050 0064FF9B${'0'.repeat(16)}0A010203:3AE8`],
])('the socket name of a peer over %s at %s', (here, there, name) => {
  expect(socketNames(accepted(here, there), 'peers')[0]).toBe(printed(name));
});

it('a peer over IPv4 may have a socket for both address families', () => {
  expect(socketNames(accepted('127.0.0.1', '127.0.0.2'), 'peers')).toEqual([
    printed('7F000002:0050 7F000001:3AE8'),
    printed(`${'0'.repeat(16)}0000FFFF7F000002:0050 ${'0'.repeat(16)}0000FFFF7F000001:3AE8`),
  ]);
  expect(socketNames(accepted('::ffff:127.0.0.1', '::ffff:127.0.0.2'), 'peers')).toEqual(
    socketNames(accepted('127.0.0.1', '127.0.0.2'), 'peers'),
  );
  expect(socketNames(accepted('::1', '::2'), 'peers')).toHaveLength(1);
});

it('a closed socket has no peer name', () => {
  expect(socketNames(accepted(undefined, undefined), 'peers')).toEqual([]);
  expect(socketNames(accepted('127.0.0.1', undefined), 'peers')).toEqual([]);
  expect(socketNames(accepted(undefined, '127.0.0.1'), 'peers')).toEqual([]);
});

const [name = '', mapped = ''] = socketNames(accepted('127.0.0.1', '127.0.0.2'), 'peers');
const HEADER =
  '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n';
const row = (of: string, inode: string) =>
  `  12: ${of} 01 00000000:00000000 00:00000000 00000000     0        0 ${inode} 1 0000 20 4 30 10 -1\n`;

async function found(text: string, read: TablesRead = 'whole') {
  const peers = await findPeers([accepted('127.0.0.1', '127.0.0.2')], async (take) => {
    for (const octet of text) take(Buffer.from(octet));
    return read;
  });
  return peers[0];
}

it.each<[string, string, TablesRead, string]>([
  ['a process has it', HEADER + row(name, '4711'), 'whole', 'held'],
  ['a socket for both families has it', HEADER + row(mapped, '4711'), 'whole', 'held'],
  ['nobody has it', HEADER + row(name, '0'), 'whole', 'left'],
  ['it is not there', HEADER + row('0:1 2:3', '1'), 'whole', 'unlisted'],
  ['the table is empty', '', 'whole', 'unlisted'],
  ['a row is no row', `${HEADER}\n: \nx\n${row(name, '7')}`, 'whole', 'held'],
  ['its row is not whole', HEADER + row(name, '7').trimEnd(), 'whole', 'unlisted'],
  ['it was found before reading broke off', row(name, '7'), 'broken', 'held'],
  ['it was not found before reading broke off', HEADER, 'broken', 'unasked'],
  ['there is no table', '', 'absent', 'unknown'],
])('%s', async (_, text, read, expected) => {
  expect(await found(text, read)).toBe(expected);
});
