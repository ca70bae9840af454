/** The error codes of RST_STREAM and GOAWAY frames (RFC 9113 §7). */
export const ErrorCode = {
  NO_ERROR: 0x0,
  PROTOCOL_ERROR: 0x1,
  INTERNAL_ERROR: 0x2,
  FLOW_CONTROL_ERROR: 0x3,
  SETTINGS_TIMEOUT: 0x4,
  STREAM_CLOSED: 0x5,
  FRAME_SIZE_ERROR: 0x6,
  REFUSED_STREAM: 0x7,
  CANCEL: 0x8,
  COMPRESSION_ERROR: 0x9,
  CONNECT_ERROR: 0xa,
  ENHANCE_YOUR_CALM: 0xb,
  INADEQUATE_SECURITY: 0xc,
  HTTP_1_1_REQUIRED: 0xd,
} as const;

export type ErrorCodeName = keyof typeof ErrorCode;

/** A code as it came: codes that nobody knows are allowed and mean INTERNAL_ERROR (RFC 9113 §7). */
export type ErrorCode = number;

const NAMES = new Map<number, ErrorCodeName>(
  Object.entries(ErrorCode).map(([name, code]) => [code, name as ErrorCodeName]),
);

/** The name of a code, for logs; undefined for one that RFC 9113 does not know. */
export function errorCodeName(code: ErrorCode): ErrorCodeName | undefined {
  return NAMES.get(code);
}
