/** Enough of DER (ITU-T X.690) to write a certificate. */

/** Tag, length and value (§8.1). */
export function der(tag: number, ...parts: Buffer[]): Buffer {
  const value = Buffer.concat(parts);
  const size = value.length;
  const length = size < 0x80 ? [size] : size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), value]);
}

export function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, ...parts);
}

export function set(...parts: Buffer[]): Buffer {
  return der(0x31, ...parts);
}

export function octets(part: Buffer): Buffer {
  return der(0x04, part);
}

export function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'));
}

export function integer(hex: string): Buffer {
  return der(0x02, Buffer.from(hex, 'hex'));
}

export function utcTime(text: string): Buffer {
  return der(0x17, Buffer.from(text));
}
