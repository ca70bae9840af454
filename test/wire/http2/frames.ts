/** Frames as RFC 9113 has them, by hand. */

export const Type = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

export const Flag = { NONE: 0, END_STREAM: 1, ACK: 1, END_HEADERS: 4, PADDED: 8, PRIORITY: 0x20 } as const;

export const Code = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  INTERNAL_ERROR: 2,
  FLOW_CONTROL_ERROR: 3,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  CONNECT_ERROR: 0xa,
  ENHANCE_YOUR_CALM: 0xb,
} as const;

export const Setting = {
  HEADER_TABLE_SIZE: 1,
  ENABLE_PUSH: 2,
  MAX_CONCURRENT_STREAMS: 3,
  INITIAL_WINDOW_SIZE: 4,
  MAX_FRAME_SIZE: 5,
  MAX_HEADER_LIST_SIZE: 6,
  ENABLE_CONNECT_PROTOCOL: 8,
} as const;

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

export function frame(type: number, flags: number, streamId: number, payload: Buffer | string = ''): Buffer {
  const octets = typeof payload === 'string' ? Buffer.from(payload, 'latin1') : payload;
  const header = Buffer.alloc(9);
  header.writeUIntBE(octets.length, 0, 3);
  header[3] = type;
  header[4] = flags;
  header.writeUInt32BE(streamId, 5);
  return Buffer.concat([header, octets]);
}

export function settings(...pairs: readonly (readonly [identifier: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(pairs.length * 6);
  pairs.forEach(([identifier, value], index) => {
    payload.writeUInt16BE(identifier, index * 6);
    payload.writeUInt32BE(value, index * 6 + 2);
  });
  return frame(Type.SETTINGS, 0, 0, payload);
}

export function windowUpdate(streamId: number, increment: number): Buffer {
  return frame(Type.WINDOW_UPDATE, 0, streamId, number(increment));
}

export function reset(streamId: number, code: number): Buffer {
  return frame(Type.RST_STREAM, 0, streamId, number(code));
}

export function goaway(lastStreamId: number, code: number): Buffer {
  return frame(Type.GOAWAY, 0, 0, Buffer.concat([number(lastStreamId), number(code)]));
}

export function ping(opaque = '01234567', flags = 0): Buffer {
  return frame(Type.PING, flags, 0, opaque);
}

function number(value: number): Buffer {
  const octets = Buffer.alloc(4);
  octets.writeUInt32BE(value);
  return octets;
}
