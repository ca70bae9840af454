/** RFC 9113 §7. */
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

type ErrorCodeName = keyof typeof ErrorCode;

/** Unknown codes mean INTERNAL_ERROR (RFC 9113 §7). */
export type ErrorCode = number;

const NAMES = new Map<number, ErrorCodeName>(
  Object.entries(ErrorCode).map(([name, code]) => [code, name as ErrorCodeName]),
);

/** Undefined for an unknown code. */
export function errorCodeName(code: ErrorCode): ErrorCodeName | undefined {
  return NAMES.get(code);
}

// One reason a rule. The text holds nothing of the message, which may hold a token.

type Row = readonly [code: ErrorCodeName, text: string];

export const FAULTS = {
  // Frames (RFC 9113 §3.4, §4, §6)
  preface_malformed: ['PROTOCOL_ERROR', 'the connection does not begin with the client preface and SETTINGS'],
  frame_too_large: ['FRAME_SIZE_ERROR', 'a frame is larger than SETTINGS_MAX_FRAME_SIZE'],
  frame_length_wrong: ['FRAME_SIZE_ERROR', 'a frame has not the length that its type asks for'],
  stream_missing: ['PROTOCOL_ERROR', 'a frame that belongs to a stream names none'],
  stream_unexpected: ['PROTOCOL_ERROR', 'a frame that belongs to the connection names a stream'],
  padding_too_long: ['PROTOCOL_ERROR', 'the padding of a frame is as long as its payload'],
  continuation_unexpected: ['PROTOCOL_ERROR', 'CONTINUATION follows no unfinished field block of its stream'],
  continuation_missing: ['PROTOCOL_ERROR', 'another frame stands within a field block'],
  self_dependency: ['PROTOCOL_ERROR', 'a stream depends on itself'],
  push_refused: ['PROTOCOL_ERROR', 'PUSH_PROMISE came though nobody may push'],
  increment_zero: ['PROTOCOL_ERROR', 'WINDOW_UPDATE adds nothing'],
  window_overflow: ['FLOW_CONTROL_ERROR', 'a window was made larger than 2^31-1'],
  window_exceeded: ['FLOW_CONTROL_ERROR', 'more DATA came than the window allows'],

  // Settings (RFC 9113 §6.5, RFC 8441 §3)
  settings_push: ['PROTOCOL_ERROR', 'SETTINGS_ENABLE_PUSH is not 0 or 1, or a server sets it to 1'],
  settings_window: ['FLOW_CONTROL_ERROR', 'SETTINGS_INITIAL_WINDOW_SIZE is above 2^31-1'],
  settings_frame_size: ['PROTOCOL_ERROR', 'SETTINGS_MAX_FRAME_SIZE is not between 2^14 and 2^24-1'],
  settings_connect: ['PROTOCOL_ERROR', 'SETTINGS_ENABLE_CONNECT_PROTOCOL is not 0 or 1, or is taken back'],
  settings_ack_unasked: ['PROTOCOL_ERROR', 'SETTINGS are acknowledged that were not sent'],

  // HPACK (RFC 7541)
  hpack_integer: ['COMPRESSION_ERROR', 'an integer of a field block is larger than any that is needed'],
  hpack_index: ['COMPRESSION_ERROR', 'a field block names an entry that neither table has'],
  hpack_huffman: ['COMPRESSION_ERROR', 'a Huffman-coded string holds EOS or is padded wrongly'],
  hpack_truncated: ['COMPRESSION_ERROR', 'a field block ends within a field'],
  hpack_table_size: ['COMPRESSION_ERROR', 'a table size update is missing, misplaced or above the limit'],

  // Streams (RFC 9113 §5.1)
  stream_id_invalid: [
    'PROTOCOL_ERROR',
    'a stream has an identifier that is even or below that of an earlier one',
  ],
  stream_idle: ['PROTOCOL_ERROR', 'a frame came for a stream that has not been opened'],
  stream_half_closed: ['STREAM_CLOSED', 'a frame came for a stream that its sender has ended'],
  stream_closed: ['STREAM_CLOSED', 'a frame came for a stream that is closed'],
  too_many_streams: ['REFUSED_STREAM', 'more streams are open than SETTINGS_MAX_CONCURRENT_STREAMS allows'],
  going_away: ['REFUSED_STREAM', 'the stream was opened after GOAWAY'],

  // Fields (RFC 9113 §8.2)
  name_malformed: ['PROTOCOL_ERROR', 'a field name is empty, not a token, or not in lower case'],
  value_malformed: [
    'PROTOCOL_ERROR',
    'a field value holds a control octet, or begins or ends with whitespace',
  ],
  connection_specific: ['PROTOCOL_ERROR', 'a field stands there that only HTTP/1.1 connections know'],
  te_malformed: ['PROTOCOL_ERROR', 'TE is not "trailers"'],
  fields_too_large: ['ENHANCE_YOUR_CALM', 'the field section is larger than the limit'],

  // Pseudo-fields (RFC 9113 §8.3, RFC 8441 §4)
  pseudo_unknown: ['PROTOCOL_ERROR', 'a pseudo-field is not known, or belongs to the other kind of message'],
  pseudo_repeated: ['PROTOCOL_ERROR', 'a pseudo-field is repeated'],
  pseudo_late: ['PROTOCOL_ERROR', 'a pseudo-field follows a field'],
  pseudo_missing: ['PROTOCOL_ERROR', 'a pseudo-field is missing, or stands where CONNECT allows none'],
  pseudo_in_trailers: ['PROTOCOL_ERROR', 'a pseudo-field stands in the trailers'],
  method_malformed: ['PROTOCOL_ERROR', 'the method is not a token of at most 32 octets'],
  method_lookalike: ['PROTOCOL_ERROR', 'the method is HEAD, CONNECT or TRACE in another case'],
  scheme_malformed: ['PROTOCOL_ERROR', ':scheme is not a scheme'],
  authority_missing: ['PROTOCOL_ERROR', 'neither :authority nor host is there'],
  authority_malformed: ['PROTOCOL_ERROR', ':authority is not a host name or address with an optional port'],
  host_malformed: ['PROTOCOL_ERROR', 'host is repeated, or not a host name or address with an optional port'],
  host_differs: ['PROTOCOL_ERROR', 'host names another authority than :authority'],
  path_malformed: [
    'PROTOCOL_ERROR',
    ':path is empty, or not a path, or holds an octet that no path may hold',
  ],
  path_too_long: ['PROTOCOL_ERROR', ':path is longer than the limit'],
  status_malformed: ['PROTOCOL_ERROR', ':status is not three digits from 100 up, or is 101'],

  // Messages (RFC 9113 §8.1)
  length_malformed: ['PROTOCOL_ERROR', 'content-length is not one decimal number below 2^53'],
  length_repeated: ['PROTOCOL_ERROR', 'content-length is repeated, in a request or with another value'],
  length_lookalike: ['PROTOCOL_ERROR', 'a field is named like a framing field, with an underscore'],
  length_differs: ['PROTOCOL_ERROR', 'content-length is not the length of the data'],
  body_not_allowed: ['PROTOCOL_ERROR', 'a message that cannot have a body announces or has one'],
  data_before_head: ['PROTOCOL_ERROR', 'data came before the final head'],
  interim_ends: ['PROTOCOL_ERROR', 'an interim answer ends the stream'],
  fields_in_tunnel: ['PROTOCOL_ERROR', 'HEADERS came on a stream that CONNECT made a tunnel'],
  trailers_unended: ['PROTOCOL_ERROR', 'trailers do not end the stream'],
  control_in_trailers: [
    'PROTOCOL_ERROR',
    'a field that frames the body or names the host stands in the trailers',
  ],

  // Abuse
  block_too_large: ['ENHANCE_YOUR_CALM', 'a field block is larger than any that is decoded'],
  continuation_flood: ['ENHANCE_YOUR_CALM', 'a field block comes in too many frames'],
  reset_flood: ['ENHANCE_YOUR_CALM', 'too many streams are opened and reset'],
  fault_flood: ['ENHANCE_YOUR_CALM', 'too many streams are made to be reset'],
  ping_flood: ['ENHANCE_YOUR_CALM', 'too many PING frames came'],
  settings_flood: ['ENHANCE_YOUR_CALM', 'too many SETTINGS frames came'],
  empty_data_flood: ['ENHANCE_YOUR_CALM', 'too many DATA frames without data came'],
  window_update_flood: ['ENHANCE_YOUR_CALM', 'too many WINDOW_UPDATE frames came'],
  goaway_flood: ['ENHANCE_YOUR_CALM', 'too many GOAWAY frames came'],
  interim_flood: ['ENHANCE_YOUR_CALM', 'too many interim answers came to one request'],
  ignored_frame_flood: ['ENHANCE_YOUR_CALM', 'too many frames came that mean nothing'],
} as const satisfies Record<string, Row>;

export type FaultReason = keyof typeof FAULTS;

/** Sends GOAWAY (RFC 9113 §5.4.1). The reader is of no more use. */
export interface ConnectionFault {
  readonly kind: 'connection_fault';
  readonly code: ErrorCode;
  readonly reason: FaultReason;
}

/** Sends RST_STREAM (RFC 9113 §5.4.2). */
interface StreamFault {
  readonly kind: 'stream_fault';
  readonly streamId: number;
  readonly code: ErrorCode;
  readonly reason: FaultReason;
}

export type Fault = ConnectionFault | StreamFault;

export function connectionFault(reason: FaultReason): ConnectionFault {
  return { kind: 'connection_fault', code: codeOf(reason), reason };
}

export function streamFault(streamId: number, reason: FaultReason): StreamFault {
  return { kind: 'stream_fault', streamId, code: codeOf(reason), reason };
}

export function codeOf(reason: FaultReason): ErrorCode {
  return ErrorCode[FAULTS[reason][0]];
}
