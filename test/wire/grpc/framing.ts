/** Length-prefixed messages, as gRPC has them in the bodies of its calls: a flag, four octets of length, the message. */

const PREFIX_BYTES = 5;

/** One message, uncompressed. */
export function framed(message: string): Buffer {
  const bytes = Buffer.from(message);
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

/** Puts messages together from whatever pieces they come in. */
export class MessageReader {
  readonly messages: string[] = [];
  #rest: Buffer = Buffer.alloc(0);

  add(piece: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, piece]);
    while (this.#rest.length >= PREFIX_BYTES) {
      const end = PREFIX_BYTES + this.#rest.readUInt32BE(1);
      if (this.#rest.length < end) return;
      this.messages.push(this.#rest.toString('utf8', PREFIX_BYTES, end));
      this.#rest = this.#rest.subarray(end);
    }
  }
}
