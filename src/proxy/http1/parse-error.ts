/** One reason a rule. The text holds nothing of the message, which may hold a token. */

import { SidecarError } from '../../platform/errors.ts';

export const REFUSALS = {
  // Octets and lines (RFC 9112 §2.2, RFC 9110 §5.5)
  bare_cr: 'a CR is not followed by LF',
  bare_lf: 'a LF is not preceded by CR',
  control_octet: 'a control octet stands in the head or the trailers',
  head_too_large: 'the head is larger than the limit',
  too_many_fields: 'there are more fields than the limit',

  // Request line (RFC 9112 §3)
  empty_line_before_start:
    'more than one empty line stands before the request line, or one before the status line',
  method_malformed: 'the method is not a token of at most 32 octets followed by one space',
  method_lookalike: 'the method is HEAD, CONNECT or TRACE in another case',
  target_malformed: 'the request target has none of the four forms, or not the one its method asks for',
  target_octet: 'the request target holds an octet that no target may hold',
  target_too_long: 'the request target is longer than the limit',
  version_unsupported: 'the start line does not name HTTP/1.0 or HTTP/1.1 where it has to',

  // Status line (RFC 9112 §4)
  http2_answer:
    'it begins with a zero octet, as HTTP/2 does, for which protocol: h2c (over TLS h2) has to be set',
  status_malformed: 'the status code is not three digits from 100 up',
  reason_malformed: 'the reason phrase is not separated by a space or not ended by CRLF',

  // Field lines (RFC 9112 §5)
  folded_line: 'a field line starts with whitespace (obs-fold)',
  name_malformed: 'a field name is empty, is not a token, or is not followed directly by a colon',
  connection_malformed: 'Connection is not a list of tokens',
  host_missing: 'an HTTP/1.1 request has no Host',
  host_repeated: 'Host is repeated',
  host_malformed: 'Host is not a host name or address with an optional port',

  // Body framing (RFC 9112 §6)
  length_malformed: 'Content-Length is not one decimal number without sign, below 2^53',
  length_repeated: 'Content-Length is repeated, in a request or with another value',
  framing_tab: 'a tab stands before or after the value of Content-Length or Transfer-Encoding',
  framing_lookalike: 'a field is named like Content-Length or Transfer-Encoding, with an underscore',
  length_with_coding: 'Content-Length and Transfer-Encoding stand together',
  coding_unknown: 'Transfer-Encoding is not exactly "chunked", once',
  coding_in_http_1_0: 'an HTTP/1.0 message has Transfer-Encoding',
  interim_flood: 'too many interim answers came to one request',
  interim_closes: 'an interim answer says that no other follows',
  body_not_allowed: 'a message that cannot have a body announces one',

  // Chunks (RFC 9112 §7.1)
  chunk_size_malformed: 'a chunk size is not hexadecimal digits, below 2^53',
  chunk_extension_malformed: 'what follows a chunk size is not extensions, each name or name=value',
  chunk_extensions_too_large: 'the chunk extensions of one message are larger than the limit',
  chunk_line_unterminated: 'a chunk size or its extensions are not followed by CRLF',
  chunk_data_unterminated: 'chunk data is not followed by CRLF',
  control_in_trailers: 'a field that frames the body or closes the connection stands in the trailers',
  trailers_too_large: 'the trailer section is larger than the limit',

  truncated: 'the connection ended before the message did',
} as const;

export type RefusalReason = keyof typeof REFUSALS;

/** The app is at fault for a request, the upstream for an answer. */
export type MessageKind = 'request' | 'response';

type MessageFaultCode = 'bad_request' | 'uri_too_long' | 'headers_too_large' | 'upstream_protocol_error';

/** Invalid, or readable in two ways: close its connection. */
export class ParseError extends SidecarError<MessageFaultCode> {
  readonly reason: RefusalReason;

  constructor(kind: MessageKind, reason: RefusalReason) {
    super(codeOf(kind, reason), `Malformed ${kind}: ${REFUSALS[reason]}`);
    this.reason = reason;
  }
}

function codeOf(kind: MessageKind, reason: RefusalReason): MessageFaultCode {
  if (kind === 'response') return 'upstream_protocol_error';
  switch (reason) {
    case 'target_too_long':
      return 'uri_too_long';
    case 'head_too_large':
    case 'too_many_fields':
    case 'trailers_too_large':
      return 'headers_too_large';
    default:
      return 'bad_request';
  }
}
