/** The nftables table that brings the app's connections to the sidecar. */

import {
  attribute,
  batch,
  content,
  FLAGS,
  type Message,
  NFT,
  native,
  nested,
  nftMessage,
} from './netlink-message.ts';

export const TABLE = 'token-sidecar';

/** NFPROTO_INET: for IPv4 and IPv6. */
const INET = 1;
const LOCAL_OUT = 3;
/** RFC 4291 §2.5.6. Not redirected: loopback's replies find no way back, and the destination's link is not known. */
const LINK_LOCAL: AddressRange = {
  family: 6,
  address: Buffer.from('fe800000000000000000000000000000', 'hex'),
  prefix: 10,
};
const CREATED = FLAGS.request | FLAGS.create;

export interface Redirection {
  readonly port: number;
  readonly capturedPorts: readonly PortRange[];
  /** A client that tries QUIC falls back to TCP at once. */
  readonly refusedUdpPorts: readonly PortRange[];
  readonly excludedPorts: readonly PortRange[];
  readonly excludedRanges: readonly AddressRange[];
  /** The sidecar's own, whose connections are left alone. */
  readonly exemptUser: number;
}

interface Chain {
  readonly name: string;
  readonly type: 'nat' | 'filter';
  /** nft's names: dstnat (-100), filter (0). */
  readonly priority: number;
  readonly rules: readonly Expression[];
}

export function installation(redirection: Redirection): readonly Message[] {
  return batch([...removed(), newTable(), ...chainsFor(redirection).flatMap(chain)]);
}

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
      attribute(1, content.text(TABLE)),
    ),
  ];
}

function newTable(): Message {
  return nftMessage(NFT.newTable, CREATED, INET, `the table ${TABLE}`, attribute(1, content.text(TABLE)));
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
  const hook = nested(4, attribute(1, content.number32(LOCAL_OUT)), attribute(2, content.number32(priority)));
  const of = [attribute(1, content.text(TABLE))];
  return [
    nftMessage(
      NFT.newChain,
      CREATED,
      INET,
      `the chain ${name}`,
      ...of,
      attribute(3, content.text(name)),
      hook,
      attribute(7, content.text(type)),
    ),
    ...rules.map((expressions, index) =>
      nftMessage(
        NFT.newRule,
        CREATED | FLAGS.append,
        INET,
        `rule ${index + 1} of the chain ${name}`,
        ...of,
        attribute(2, content.text(name)),
        nested(4, expressions),
      ),
    ),
  ];
}

// Parts of rules (linux/netfilter/nf_tables.h).

/** Holds the compared value of up to 16 octets. */
const REGISTER = 1;
const VERDICT_REGISTER = 0;

const META = { outgoingType: 9, user: 10, family: 15, protocol: 16 } as const;
const COMPARE = { equal: 0, atMost: 3, atLeast: 5 } as const;
const HEADER = { network: 1, transport: 2 } as const;

/** ARPHRD_LOOPBACK. The interface's name may differ. */
const LOOPBACK = 772;
const PROTOCOL = { tcp: 6, udp: 17 } as const;
/** NFPROTO_IPV4 and NFPROTO_IPV6. */
const FAMILY = { 4: 2, 6: 10 } as const;

/** NFT_RETURN. */
const RETURN = -5;
/** NFT_REJECT_ICMPX_UNREACH. */
const REJECT_BOTH_FAMILIES = 2;
const PORT_UNREACHABLE = 1;

type Expression = Buffer;

interface PortRange {
  readonly first: number;
  readonly last: number;
}

export interface AddressRange {
  readonly family: 4 | 6;
  /** 4 or 16 octets. */
  readonly address: Buffer;
  readonly prefix: number;
}

function expression(name: string, ...attributes: readonly Buffer[]): Expression {
  return nested(1, attribute(1, content.text(name)), nested(2, ...attributes));
}

function meta(key: number): Expression {
  return expression('meta', attribute(2, content.number32(key)), attribute(1, content.number32(REGISTER)));
}

function compare(operation: number, value: Buffer): Expression {
  const data = nested(3, attribute(1, value));
  return expression(
    'cmp',
    attribute(1, content.number32(REGISTER)),
    attribute(2, content.number32(operation)),
    data,
  );
}

function payload(header: number, offset: number, length: number): Expression {
  const place = [
    attribute(2, content.number32(header)),
    attribute(3, content.number32(offset)),
    attribute(4, content.number32(length)),
  ];
  return expression('payload', attribute(1, content.number32(REGISTER)), ...place);
}

function ofUser(user: number): Expression {
  return Buffer.concat([meta(META.user), compare(COMPARE.equal, native.number32(user))]);
}

/** By whatever address. */
function toLoopback(): Expression {
  return Buffer.concat([meta(META.outgoingType), compare(COMPARE.equal, native.number16(LOOPBACK))]);
}

function toPorts(protocol: keyof typeof PROTOCOL, { first, last }: PortRange): Expression {
  // At the same offset in both protocols.
  const port = payload(HEADER.transport, 2, 2);
  const range =
    first === last
      ? compare(COMPARE.equal, content.number16(first))
      : Buffer.concat([
          compare(COMPARE.atLeast, content.number16(first)),
          compare(COMPARE.atMost, content.number16(last)),
        ]);
  return Buffer.concat([ofProtocol(protocol), port, range]);
}

function ofProtocol(protocol: keyof typeof PROTOCOL): Expression {
  return Buffer.concat([meta(META.protocol), compare(COMPARE.equal, Buffer.of(PROTOCOL[protocol]))]);
}

export function toRange({ family, address, prefix }: AddressRange): Expression {
  const ofFamily = Buffer.concat([meta(META.family), compare(COMPARE.equal, Buffer.of(FAMILY[family]))]);
  const mask = maskOf(prefix, address.length);
  const network = Buffer.from(address.map((octet, index) => octet & (mask[index] as number)));
  const offset = family === 4 ? 16 : 24;
  return Buffer.concat([
    ofFamily,
    payload(HEADER.network, offset, address.length),
    expression(
      'bitwise',
      attribute(1, content.number32(REGISTER)),
      attribute(2, content.number32(REGISTER)),
      attribute(3, content.number32(address.length)),
      nested(4, attribute(1, mask)),
      nested(5, attribute(1, Buffer.alloc(address.length))),
    ),
    compare(COMPARE.equal, network),
  ]);
}

function maskOf(prefix: number, octets: number): Buffer {
  return Buffer.from(
    Array.from({ length: octets }, (_, index) => {
      const bits = Math.min(8, Math.max(0, prefix - 8 * index));
      return 0xff & (0xff << (8 - bits));
    }),
  );
}

/** Skips the rules that follow. */
function leave(): Expression {
  const verdict = nested(2, attribute(1, content.number32(RETURN)));
  return expression('immediate', attribute(1, content.number32(VERDICT_REGISTER)), nested(2, verdict));
}

function redirectTo(port: number): Expression {
  return Buffer.concat([
    expression(
      'immediate',
      attribute(1, content.number32(REGISTER)),
      nested(2, attribute(1, content.number16(port))),
    ),
    expression('redir', attribute(1, content.number32(REGISTER))),
  ]);
}

/** Tells the sender at once that nobody listens. */
function refuse(): Expression {
  return expression(
    'reject',
    attribute(1, content.number32(REJECT_BOTH_FAMILIES)),
    attribute(2, Buffer.of(PORT_UNREACHABLE)),
  );
}
