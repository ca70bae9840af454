/** The nftables table that brings the app's connections to the sidecar. */

import {
  type AddressRange,
  type Expression,
  leave,
  ofUser,
  type PortRange,
  redirectTo,
  refuse,
  toLoopback,
  toPorts,
  toRange,
} from './expressions.ts';
import {
  attribute,
  batch,
  FLAGS,
  type Message,
  NFT,
  nested,
  nftMessage,
  number32,
  text,
} from './netlink-message.ts';

export const TABLE = 'token-sidecar';

/** NFPROTO_INET: one table for IPv4 and IPv6. */
const INET = 1;
const LOCAL_OUT = 3;
/**
 * RFC 4291 §2.5.6. A connection from such an address cannot be redirected: loopback's replies to it find no way back,
 * and nothing says on which link its destination is.
 */
const LINK_LOCAL: AddressRange = {
  family: 6,
  address: Buffer.from('fe800000000000000000000000000000', 'hex'),
  prefix: 10,
};
const CREATED = FLAGS.request | FLAGS.create;

export interface Redirection {
  /** Where the sidecar listens for redirected connections. */
  readonly port: number;
  /** TCP ports of the app's destinations. */
  readonly capturedPorts: readonly PortRange[];
  /** UDP ports: a client that tries QUIC there learns at once to use TCP. */
  readonly refusedUdpPorts: readonly PortRange[];
  /** Neither captured nor refused. */
  readonly excludedPorts: readonly PortRange[];
  readonly excludedRanges: readonly AddressRange[];
  /** The user whose connections are left alone: the sidecar's own. */
  readonly exemptUser: number;
}

interface Chain {
  readonly name: string;
  readonly type: 'nat' | 'filter';
  /** The position among others at the same hook, by nft's names: dstnat (-100), filter (0). */
  readonly priority: number;
  readonly rules: readonly Expression[];
}

/** Replaces an existing table as a whole. */
export function installation(redirection: Redirection): readonly Message[] {
  return batch([...removed(), newTable(), ...chainsFor(redirection).flatMap(chain)]);
}

/** Removes the table, if there is one. */
export function removal(): readonly Message[] {
  return batch(removed());
}

/** Only an existing table can be deleted, so it is created first. */
function removed(): readonly Message[] {
  return [
    newTable(),
    nftMessage(
      NFT.deleteTable,
      FLAGS.request,
      INET,
      `to delete the table ${TABLE}`,
      attribute(1, text(TABLE)),
    ),
  ];
}

function newTable(): Message {
  return nftMessage(NFT.newTable, CREATED, INET, `the table ${TABLE}`, attribute(1, text(TABLE)));
}

function chainsFor({
  port,
  capturedPorts,
  refusedUdpPorts,
  exemptUser,
  ...excluded
}: Redirection): readonly Chain[] {
  const exempt = [
    rule(ofUser(exemptUser), leave()),
    rule(toLoopback(), leave()),
    rule(toRange(LINK_LOCAL), leave()),
    ...excluded.excludedRanges.map((range) => rule(toRange(range), leave())),
  ];
  const without = (protocol: 'tcp' | 'udp') =>
    excluded.excludedPorts.map((range) => rule(toPorts(protocol, range), leave()));
  const redirected = capturedPorts.map((range) => rule(toPorts('tcp', range), redirectTo(port)));
  const refused = refusedUdpPorts.map((range) => rule(toPorts('udp', range), refuse()));
  return [
    { name: 'redirect', type: 'nat', priority: -100, rules: [...exempt, ...without('tcp'), ...redirected] },
    { name: 'refuse', type: 'filter', priority: 0, rules: [...exempt, ...without('udp'), ...refused] },
  ];
}

function rule(...expressions: readonly Expression[]): Expression {
  return Buffer.concat(expressions);
}

function chain({ name, type, priority, rules }: Chain): readonly Message[] {
  const hook = nested(4, attribute(1, number32(LOCAL_OUT)), attribute(2, number32(priority)));
  const of = [attribute(1, text(TABLE))];
  return [
    nftMessage(
      NFT.newChain,
      CREATED,
      INET,
      `the chain ${name}`,
      ...of,
      attribute(3, text(name)),
      hook,
      attribute(7, text(type)),
    ),
    ...rules.map((expressions, index) =>
      nftMessage(
        NFT.newRule,
        CREATED | FLAGS.append,
        INET,
        `rule ${index + 1} of the chain ${name}`,
        ...of,
        attribute(2, text(name)),
        nested(4, expressions),
      ),
    ),
  ];
}
