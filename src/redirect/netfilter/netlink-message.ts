/** nftables' messages (linux/netlink.h, linux/netfilter/nfnetlink.h). */

import { endianness } from 'node:os';

const LITTLE_ENDIAN = endianness() === 'LE';

const HEADER_BYTES = 16;
const NETFILTER_HEADER_BYTES = 4;

const NFNL_SUBSYS_NFTABLES = 10;
const NLA_F_NESTED = 0x8000;

const BATCH_BEGIN = 0x10;
const BATCH_END = 0x11;

export const NLMSG = { error: 2, done: 3 } as const;

export const FLAGS = { request: 0x1, acknowledge: 0x4, dump: 0x300, create: 0x400, append: 0x800 } as const;

/** enum nf_tables_msg_types. */
export const NFT = {
  newTable: 0,
  getTable: 1,
  deleteTable: 2,
  newChain: 3,
  getChain: 4,
  newRule: 6,
} as const;

/** Not yet numbered. */
export interface Message {
  readonly type: number;
  readonly flags: number;
  /** NFPROTO_*; 0 by default. */
  readonly family?: number;
  readonly attributes?: readonly Buffer[];
  /** For errors. */
  readonly what: string;
}

export function nftMessage(
  kind: number,
  flags: number,
  family: number,
  what: string,
  ...attributes: readonly Buffer[]
): Message {
  return { type: (NFNL_SUBSYS_NFTABLES << 8) | kind, flags, family, attributes, what };
}

/**
 * The kernel applies all or nothing, and reports the refused messages in order. Acknowledgements of all would not fit
 * into the socket.
 */
export function batch(messages: readonly Message[]): readonly Message[] {
  return [
    { type: BATCH_BEGIN, flags: FLAGS.request, what: 'a batch' },
    ...messages.map((message, index) =>
      index === messages.length - 1 ? { ...message, flags: message.flags | FLAGS.acknowledge } : message,
    ),
    { type: BATCH_END, flags: FLAGS.request, what: 'the end of a batch' },
  ];
}

export function encodeMessage(
  { type, flags, family = 0, attributes = [] }: Message,
  sequence: number,
): Buffer {
  const isBatch = type === BATCH_BEGIN || type === BATCH_END;
  const head = Buffer.alloc(HEADER_BYTES + NETFILTER_HEADER_BYTES);
  const message = Buffer.concat([head, ...attributes]);
  native.number32(message.length).copy(message, 0);
  native.number16(type).copy(message, 4);
  native.number16(flags).copy(message, 6);
  native.number32(sequence).copy(message, 8);
  message[HEADER_BYTES] = family;
  // For a batch: the subsystem.
  message.writeUInt16BE(isBatch ? NFNL_SUBSYS_NFTABLES : 0, HEADER_BYTES + 2);
  return message;
}

/** Length, type and content, padded to four octets. */
export function attribute(kind: number, ...content: readonly Buffer[]): Buffer {
  const said = Buffer.concat(content);
  const length = 4 + said.length;
  const whole = Buffer.alloc(aligned(length));
  native.number16(length).copy(whole, 0);
  native.number16(kind).copy(whole, 2);
  said.copy(whole, 4);
  return whole;
}

export function nested(kind: number, ...attributes: readonly Buffer[]): Buffer {
  return attribute(kind | NLA_F_NESTED, ...attributes);
}

/** Of attributes. */
export const content = {
  text(value: string): Buffer {
    return Buffer.from(`${value}\0`, 'latin1');
  },

  /** Network order, for nftables' numbers. */
  number32(value: number): Buffer {
    const octets = Buffer.alloc(4);
    octets.writeInt32BE(value | 0);
    return octets;
  },

  number16(value: number): Buffer {
    const octets = Buffer.alloc(2);
    octets.writeUInt16BE(value);
    return octets;
  },
};

/** The machine's order, for headers and the kernel's numbers. */
export const native = {
  number32(value: number): Buffer {
    const octets = Buffer.alloc(4);
    if (LITTLE_ENDIAN) octets.writeUInt32LE(value);
    else octets.writeUInt32BE(value);
    return octets;
  },

  number64(value: number): Buffer {
    const octets = Buffer.alloc(8);
    if (LITTLE_ENDIAN) octets.writeBigUInt64LE(BigInt(value));
    else octets.writeBigUInt64BE(BigInt(value));
    return octets;
  },

  number16(value: number): Buffer {
    const octets = Buffer.alloc(2);
    if (LITTLE_ENDIAN) octets.writeUInt16LE(value);
    else octets.writeUInt16BE(value);
    return octets;
  },
};

interface Answer {
  readonly type: number;
  readonly sequence: number;
  readonly body: Buffer;
}

/** @throws {RangeError} if it is shorter than it claims. */
export function readAnswers(octets: Buffer): readonly Answer[] {
  const answers: Answer[] = [];
  for (let at = 0; at < octets.length; ) {
    const length = readNative32(octets, at);
    if (length < HEADER_BYTES || at + length > octets.length)
      throw new RangeError('an answer that is cut short');
    const body = octets.subarray(at + HEADER_BYTES, at + length);
    answers.push({ type: readNative16(octets, at + 4), sequence: readNative32(octets, at + 8), body });
    at += aligned(length);
  }
  return answers;
}

/** Undefined if there is none. */
export function textIn(body: Buffer, kind: number): string | undefined {
  for (let at = NETFILTER_HEADER_BYTES; at + 4 <= body.length; ) {
    const length = readNative16(body, at);
    if (length < 4) return undefined;
    if ((readNative16(body, at + 2) & ~NLA_F_NESTED) === kind) {
      return body.toString('latin1', at + 4, at + length).replace(/\0.*$/s, '');
    }
    at += aligned(length);
  }
  return undefined;
}

/** Positive; 0 for an acknowledgement. @param body of an `NLMSG.error`. */
export function errorNumber(body: Buffer): number {
  return (LITTLE_ENDIAN ? -body.readInt32LE(0) : -body.readInt32BE(0)) | 0;
}

export function readNative32(octets: Buffer, at: number): number {
  return LITTLE_ENDIAN ? octets.readUInt32LE(at) : octets.readUInt32BE(at);
}

function readNative16(octets: Buffer, at: number): number {
  return LITTLE_ENDIAN ? octets.readUInt16LE(at) : octets.readUInt16BE(at);
}

function aligned(length: number): number {
  return (length + 3) & ~3;
}
