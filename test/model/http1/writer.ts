import type { ResponseFraming, Stop } from '../walk.ts';

/** A message that is sent in two parts at most. */
export interface Sending {
  readonly first: Buffer;
  readonly rest: Buffer;
}

export function message(
  head: readonly string[],
  body: Buffer,
  framing: ResponseFraming | 'none',
  stop: Stop,
): Sending {
  const fields = [...head];
  if (framing === 'length') fields.push(`Content-Length: ${body.length}`);
  if (framing === 'chunked') fields.push('Transfer-Encoding: chunked');
  const headBytes = Buffer.from(`${fields.join('\r\n')}\r\n\r\n`, 'latin1');
  const bodyBytes = framing === 'none' ? Buffer.alloc(0) : framing === 'chunked' ? chunked(body) : body;
  const whole = Buffer.concat([headBytes, bodyBytes]);
  const at = cutAt(stop, headBytes.length, whole.length);
  return { first: whole.subarray(0, at), rest: whole.subarray(at) };
}

function cutAt(stop: Stop, headBytes: number, bytes: number): number {
  switch (stop) {
    case 'in the head':
      return Math.floor(headBytes / 2);
    case 'after the head':
      return headBytes;
    case 'in the body':
      return Math.floor((headBytes + bytes) / 2);
    case 'whole':
      return bytes;
  }
}

/** In three chunks, where there is enough of it. */
function chunked(body: Buffer): Buffer {
  const size = Math.ceil(body.length / 3);
  const parts: Buffer[] = [];
  for (let at = 0; at < body.length; at += size) {
    const piece = body.subarray(at, at + size);
    parts.push(Buffer.from(`${piece.length.toString(16)}\r\n`, 'latin1'), piece, Buffer.from('\r\n'));
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]);
}
