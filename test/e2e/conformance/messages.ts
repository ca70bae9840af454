/** Messages as the suite's programs pass them to each other: Protocol Buffers, each behind its length in four octets. */

/** Fields one after the other are a message. Where one comes twice the last one counts. */
export function field(number: number, value: string | number): Buffer {
  if (typeof value === 'number') return Buffer.concat([varint(number << 3), varint(value)]);
  const octets = Buffer.from(value);
  return Buffer.concat([varint((number << 3) | 2), varint(octets.length), octets]);
}

export function delimited(...parts: readonly Buffer[]): Buffer {
  const message = Buffer.concat(parts);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(message.length);
  return Buffer.concat([length, message]);
}

export async function* messagesIn(input: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of input) {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 4) {
      const end = 4 + rest.readUInt32BE();
      if (rest.length < end) break;
      yield rest.subarray(4, end);
      rest = rest.subarray(end);
    }
  }
}

function varint(value: number): Buffer {
  const octets: number[] = [];
  let rest = value;
  for (; rest > 127; rest >>>= 7) octets.push((rest & 127) | 128);
  return Buffer.from([...octets, rest]);
}
