/** Field blocks as RFC 7541 has them, by hand: literals alone are written; static table and literals are read. */

/** RFC 7541, appendix A, from index 1 on. */
const STATIC: readonly (readonly [name: string, value: string])[] = [
  [':authority', ''],
  [':method', 'GET'],
  [':method', 'POST'],
  [':path', '/'],
  [':path', '/index.html'],
  [':scheme', 'http'],
  [':scheme', 'https'],
  [':status', '200'],
  [':status', '204'],
  [':status', '206'],
  [':status', '304'],
  [':status', '400'],
  [':status', '404'],
  [':status', '500'],
  ...[
    'accept-charset',
    'accept-encoding',
    'accept-language',
    'accept-ranges',
    'accept',
    'access-control-allow-origin',
    'age',
    'allow',
    'authorization',
    'cache-control',
    'content-disposition',
    'content-encoding',
    'content-language',
    'content-length',
    'content-location',
    'content-range',
    'content-type',
    'cookie',
    'date',
    'etag',
    'expect',
    'expires',
    'from',
    'host',
    'if-match',
    'if-modified-since',
    'if-none-match',
    'if-range',
    'if-unmodified-since',
    'last-modified',
    'link',
    'location',
    'max-forwards',
    'proxy-authenticate',
    'proxy-authorization',
    'range',
    'referer',
    'refresh',
    'retry-after',
    'server',
    'set-cookie',
    'strict-transport-security',
    'transfer-encoding',
    'user-agent',
    'vary',
    'via',
    'www-authenticate',
  ].map((name) => [name, name === 'accept-encoding' ? 'gzip, deflate' : ''] as const),
];

/** Name, value, name, value, …, each as a literal that enters no table. */
export function writeBlock(fields: readonly string[]): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    parts.push(Buffer.from([0x00]), text(fields[at] as string), text(fields[at + 1] as string));
  }
  return Buffer.concat(parts);
}

/** The fields of a block that uses the static table and plain literals alone. */
export function readBlock(block: Buffer): string[] {
  const fields: string[] = [];
  let at = 0;
  while (at < block.length) {
    const octet = block[at] as number;
    if (octet >= 0x80) {
      const [name, value] = entry(integer(0x7f));
      fields.push(name, value);
    } else if (octet >= 0x40) throw new Error('the block adds to the table');
    else if (octet >= 0x20) integer(0x1f);
    else {
      const index = integer(0x0f);
      const name = index === 0 ? string() : entry(index)[0];
      fields.push(name, string());
    }
  }
  return fields;

  function integer(prefix: number): number {
    let value = (block[at++] as number) & prefix;
    if (value < prefix) return value;
    for (let shift = 0; ; shift += 7) {
      const octet = block[at++] as number;
      value += (octet & 0x7f) << shift;
      if (octet < 0x80) return value;
    }
  }

  function string(): string {
    if (((block[at] as number) & 0x80) !== 0) throw new Error('a string is Huffman-coded');
    const length = integer(0x7f);
    at += length;
    return block.toString('latin1', at - length, at);
  }
}

function entry(index: number): readonly [string, string] {
  const found = STATIC[index - 1];
  if (found === undefined) throw new Error(`the block names entry ${index}, which nobody put there`);
  return found;
}

function text(value: string): Buffer {
  const octets = Buffer.from(value, 'latin1');
  const length = [];
  if (octets.length < 0x7f) length.push(octets.length);
  else {
    length.push(0x7f);
    let rest = octets.length - 0x7f;
    for (; rest >= 0x80; rest >>>= 7) length.push((rest & 0x7f) | 0x80);
    length.push(rest);
  }
  return Buffer.concat([Buffer.from(length), octets]);
}
