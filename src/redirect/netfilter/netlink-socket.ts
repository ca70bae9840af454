/** See netlink(7). */

import { getSystemErrorName } from 'node:util';
import { SidecarError } from '../../platform/errors.ts';
import { cFunctions, lastErrorReader } from './c-functions.ts';
import {
  encodeMessage,
  errorNumber,
  FLAGS,
  type Message,
  NLMSG,
  native,
  readAnswers,
} from './netlink-message.ts';

const AF_NETLINK = 16;
const SOCK_RAW = 3;
const NETLINK_NETFILTER = 12;
const SOL_SOCKET = 1;
const SO_RCVTIMEO = 20;
const SOL_NETLINK = 270;
const NETLINK_NO_ENOBUFS = 5;
const EPERM = 1;

/** Ends only what would never end, since the kernel answers synchronously. */
const PATIENCE_SECONDS = 5;

const ANSWER_BYTES = 64 * 1024;

/** More than any table or machine has. */
const MAX_ANSWERS = 10_000;

export class NetlinkSocket implements Disposable {
  readonly #c = cFunctions(
    {
      socket: { arguments: ['i32', 'i32', 'i32'], return: 'i32' },
      connect: { arguments: ['i32', 'buffer', 'u32'], return: 'i32' },
      setsockopt: { arguments: ['i32', 'i32', 'i32', 'buffer', 'u32'], return: 'i32' },
      send: { arguments: ['i32', 'buffer', 'u64', 'i32'], return: 'i64' },
      recv: { arguments: ['i32', 'buffer', 'u64', 'i32'], return: 'i64' },
      close: { arguments: ['i32'], return: 'i32' },
    },
    'redirect',
  );
  readonly #lastError = lastErrorReader('redirect');
  readonly #fd: number;
  #sequence = 1;

  /** @throws {SidecarError} `configuration` if there is no such socket. */
  constructor() {
    this.#fd = this.#c.socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
    if (this.#fd < 0)
      throw new SidecarError('configuration', 'redirect: this kernel has no netfilter to talk to');
    const kernel = Buffer.alloc(12);
    native.number16(AF_NETLINK).copy(kernel);
    const timeout = Buffer.alloc(16);
    native.number64(PATIENCE_SECONDS).copy(timeout);
    this.#c.setsockopt(this.#fd, SOL_SOCKET, SO_RCVTIMEO, timeout, timeout.length);
    // The first refusals can be read as usual then.
    this.#c.setsockopt(this.#fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, native.number32(1), 4);
    if (this.#c.connect(this.#fd, kernel, kernel.length) < 0) {
      this[Symbol.dispose]();
      throw new SidecarError('configuration', 'redirect: netfilter does not take a conversation');
    }
  }

  /**
   * Waits for the acknowledgements.
   * @throws {SidecarError} `configuration` that names the refused message and the reason.
   */
  change(messages: readonly Message[]): void {
    const first = this.#sequence;
    this.#send(messages);
    const waited = new Set(
      messages.flatMap(({ flags }, index) => ((flags & FLAGS.acknowledge) === 0 ? [] : [first + index])),
    );
    while (waited.size > 0) {
      for (const { type, sequence, body } of this.#receive()) {
        const error = type === NLMSG.error ? errorNumber(body) : 0;
        if (error !== 0) throw refusal(error, messages[sequence - first]?.what ?? 'a message');
        waited.delete(sequence);
      }
    }
  }

  /** @throws {SidecarError} `configuration` if the kernel does not tell. */
  list(message: Message): ReturnType<typeof readAnswers> {
    this.#send([message]);
    const all = [];
    while (all.length < MAX_ANSWERS) {
      for (const answer of this.#receive()) {
        if (answer.type === NLMSG.done) return all;
        const error = answer.type === NLMSG.error ? errorNumber(answer.body) : 0;
        if (error !== 0) throw refusal(error, message.what);
        all.push(answer);
      }
    }
    return all;
  }

  [Symbol.dispose](): void {
    this.#c.close(this.#fd);
  }

  #send(messages: readonly Message[]): void {
    const octets = Buffer.concat(
      messages.map((message, index) => encodeMessage(message, this.#sequence + index)),
    );
    this.#sequence += messages.length;
    const sent = this.#c.send(this.#fd, octets, BigInt(octets.length), 0);
    if (Number(sent) !== octets.length)
      throw new SidecarError(
        'configuration',
        `redirect: netfilter does not take ${octets.length} octets: ${this.#lastError()}`,
      );
  }

  #receive(): ReturnType<typeof readAnswers> {
    const octets = Buffer.alloc(ANSWER_BYTES);
    const length = Number(this.#c.recv(this.#fd, octets, BigInt(octets.length), 0));
    if (length <= 0) {
      const error = this.#lastError();
      throw new SidecarError(
        'configuration',
        error === 'EAGAIN'
          ? `redirect: netfilter did not answer in ${PATIENCE_SECONDS} s`
          : `redirect: what netfilter answers cannot be read: ${error}`,
      );
    }
    // A copy, since lists keep answers.
    return readAnswers(Buffer.from(octets.subarray(0, length)));
  }
}

function refusal(error: number, what: string): SidecarError {
  const name = getSystemErrorName(-error);
  const why =
    error === EPERM
      ? 'the capability NET_ADMIN is missing: expected an init container with it, as user 0'
      : `${name}: expected a kernel with nf_tables, its NAT and its reject`;
  return new SidecarError('configuration', `redirect: the kernel refuses ${what}: ${why}`);
}
