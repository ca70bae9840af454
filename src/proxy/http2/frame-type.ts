/** Types of frames (RFC 9113 §6); all others are ignored (§5.5). */
export const DATA = 0x0;
export const HEADERS = 0x1;
export const PRIORITY = 0x2;
export const RST_STREAM = 0x3;
export const SETTINGS = 0x4;
export const PUSH_PROMISE = 0x5;
export const PING = 0x6;
export const GOAWAY = 0x7;
export const WINDOW_UPDATE = 0x8;
export const CONTINUATION = 0x9;

/** Flags: of DATA and HEADERS; of SETTINGS and PING; of HEADERS and CONTINUATION; of DATA and HEADERS; of HEADERS. */
export const END_STREAM = 0x1;
export const ACK = 0x1;
export const END_HEADERS = 0x4;
export const PADDED = 0x8;
export const PRIORITY_FLAG = 0x20;

/** Octets of the header of every frame (RFC 9113 §4.1). */
export const FRAME_HEADER_BYTES = 9;

/** The least that every endpoint takes (RFC 9113 §4.2), and the most that SETTINGS_MAX_FRAME_SIZE may say. */
export const MIN_MAX_FRAME_BYTES = 16_384;
export const MAX_MAX_FRAME_BYTES = 16_777_215;

/** The largest stream identifier, window and increment. */
export const MAX_31_BITS = 0x7fffffff;
