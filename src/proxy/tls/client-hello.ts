/** A ClientHello (RFC 8446 §4.1.2, RFC 5246 §7.4.1.2) is only read: OpenSSL gets the same octets. */

import { withoutRootDot } from '../../platform/net/address.ts';

/** With post-quantum key shares it takes 2 KB. */
export const MAX_HELLO_BYTES = 16 * 1024;

interface ClientHello {
  readonly kind: 'hello';
  /** Lower-case, without a final dot (RFC 6066 §3). */
  readonly serverName: string | undefined;
  readonly protocols: readonly string[] | undefined;
}

type ClientHelloResult =
  | ClientHello
  /** More octets are needed. */
  | { readonly kind: 'partial' }
  | { readonly kind: 'malformed'; readonly why: string };

export const HANDSHAKE_RECORD = 22;
const CLIENT_HELLO = 1;
const RECORD_HEAD_BYTES = 5;
const MAX_RECORD_BYTES = 2 ** 14;
const SERVER_NAME = 0;
const APPLICATION_PROTOCOLS = 16;
const HOST_NAME = 0;

const PARTIAL: ClientHelloResult = { kind: 'partial' };

/** @param octets everything so far. */
export function readClientHello(octets: Buffer): ClientHelloResult {
  const message = messageIn(octets);
  if (!Buffer.isBuffer(message)) return message;
  try {
    return helloIn(new Reader(message));
  } catch (error) {
    if (error instanceof RangeError) return malformed('a ClientHello that is not well formed');
    throw error;
  }
}

/** Assembled from its records (RFC 8446 §5.1). */
function messageIn(octets: Buffer): Buffer | ClientHelloResult {
  const pieces: Buffer[] = [];
  let wanted = 4;
  let had = 0;
  for (let at = 0; ; ) {
    if (at >= octets.length) return octets.length > MAX_HELLO_BYTES ? tooLong() : PARTIAL;
    if (octets[at] !== HANDSHAKE_RECORD) return malformed('no TLS: octets that are no handshake');
    if (octets.length > at + 1 && octets[at + 1] !== 3)
      return malformed('no TLS: a record of no known version');
    if (octets.length < at + RECORD_HEAD_BYTES) return PARTIAL;
    const length = octets.readUInt16BE(at + 3);
    if (length === 0 || length > MAX_RECORD_BYTES) return malformed('a record of no valid length');
    const piece = octets.subarray(at + RECORD_HEAD_BYTES, at + RECORD_HEAD_BYTES + length);
    pieces.push(piece);
    had += piece.length;
    at += RECORD_HEAD_BYTES + length;
    if (had >= 4 && wanted === 4) {
      const head = Buffer.concat(pieces);
      if (head[0] !== CLIENT_HELLO) return malformed('a handshake that begins with no ClientHello');
      wanted = 4 + head.readUIntBE(1, 3);
      if (wanted > MAX_HELLO_BYTES) return tooLong();
    }
    if (had >= wanted) return Buffer.concat(pieces).subarray(4, wanted);
  }
}

function helloIn(reader: Reader): ClientHello {
  // Version and random.
  reader.skip(2 + 32);
  reader.vector(1); // session id
  reader.vector(2); // cipher suites
  reader.vector(1); // compression methods
  let serverName: string | undefined;
  let protocols: readonly string[] | undefined;
  if (!reader.done) {
    const extensions = new Reader(reader.vector(2));
    while (!extensions.done) {
      const type = extensions.number(2);
      const content = extensions.vector(2);
      if (type === SERVER_NAME) serverName = serverNameIn(new Reader(content));
      else if (type === APPLICATION_PROTOCOLS) protocols = protocolsIn(new Reader(content));
    }
  }
  return { kind: 'hello', serverName, protocols };
}

function serverNameIn(reader: Reader): string | undefined {
  const names = new Reader(reader.vector(2));
  while (!names.done) {
    const type = names.number(1);
    const name = names.vector(2);
    if (type === HOST_NAME) return withoutRootDot(name.toString('latin1').toLowerCase());
  }
  return undefined;
}

function protocolsIn(reader: Reader): readonly string[] {
  const names = new Reader(reader.vector(2));
  const protocols: string[] = [];
  while (!names.done) protocols.push(names.vector(1).toString('latin1'));
  return protocols;
}

function malformed(why: string): ClientHelloResult {
  return { kind: 'malformed', why };
}

function tooLong(): ClientHelloResult {
  return malformed(`a ClientHello of more than ${MAX_HELLO_BYTES} octets`);
}

/** Throws RangeError if a length exceeds what is there. */
class Reader {
  readonly #octets: Buffer;
  #at = 0;

  constructor(octets: Buffer) {
    this.#octets = octets;
  }

  get done(): boolean {
    return this.#at === this.#octets.length;
  }

  skip(bytes: number): void {
    this.#take(bytes);
  }

  /** @param bytes of the number, 1 to 3. */
  number(bytes: number): number {
    return this.#take(bytes).readUIntBE(0, bytes);
  }

  vector(lengthBytes: number): Buffer {
    return this.#take(this.number(lengthBytes));
  }

  #take(bytes: number): Buffer {
    const end = this.#at + bytes;
    if (end > this.#octets.length) throw new RangeError('less is there than is said to be');
    const taken = this.#octets.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }
}
