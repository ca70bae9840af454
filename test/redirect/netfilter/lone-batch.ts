/** Tells the netfilter of its network namespace what `argv[2]` names, and prints how many rules it has, or why it refuses. */

import { messageOf } from '../../../src/platform/errors.ts';
import { batch, FLAGS, nftMessage } from '../../../src/redirect/netfilter/netlink-message.ts';
import { NetlinkSocket } from '../../../src/redirect/netfilter/netlink-socket.ts';
import { installation, removal } from '../../../src/redirect/netfilter/redirection-table.ts';

const NFT_GET_RULE = 7;
const INET = 1;
/** As many of each kind as the command takes. */
const MOST = 64;

const ports = Array.from({ length: MOST }, (_, index) => ({
  first: 1000 + 10 * index,
  last: 1005 + 10 * index,
}));
const ranges = Array.from({ length: MOST }, (_, index) => ({
  family: 6 as const,
  address: Buffer.alloc(16, index),
  prefix: 128,
}));
const largest = installation({
  port: 15_083,
  capturedPorts: ports,
  refusedUdpPorts: ports,
  excludedPorts: ports,
  excludedRanges: ranges,
  exemptUser: 65_532,
});

const CHANGES = {
  largest,
  /** Rules without their table and chain. */
  'only-refused': batch([
    ...removal().slice(1, -1),
    ...largest.filter(({ what }) => what.startsWith('rule')),
  ]),
};

using netfilter = new NetlinkSocket();
try {
  netfilter.change(CHANGES[process.argv[2] as keyof typeof CHANGES]);
  const rules = nftMessage(NFT_GET_RULE, FLAGS.request | FLAGS.dump, INET, 'to list rules');
  process.stdout.write(`${netfilter.list(rules).length} rules`);
} catch (error) {
  process.stdout.write(messageOf(error));
}
