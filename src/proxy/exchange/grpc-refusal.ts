import { ERRORS, type ProxyErrorCode, type SidecarError } from '../../platform/errors.ts';
import { GRPC_STATUS, type GrpcStatusName } from '../../platform/grpc-status.ts';
import { ERROR_FIELD } from '../streams/header-rules.ts';
import type { OwnAnswer } from '../streams/message.ts';
import { UpstreamReset } from '../streams/upstream-reset.ts';
import { retryAfterSeconds } from './retry-after.ts';

/** gRPC advises clients to accept 8 KiB of trailers in all; a message may quote a name that the app chose. */
const MESSAGE_BYTES = 1024;

const PERCENT = 0x25;

/** The gRPC status for each RST_STREAM code (PROTOCOL-HTTP2.md, *Errors*); all others are INTERNAL. */
const STATUS_OF_RESET: ReadonlyMap<number, GrpcStatusName> = new Map([
  // REFUSED_STREAM
  [0x7, 'UNAVAILABLE'],
  // CANCEL: what a service sends once its caller's deadline has passed.
  [0x8, 'CANCELLED'],
  // ENHANCE_YOUR_CALM
  [0xb, 'RESOURCE_EXHAUSTED'],
  // INADEQUATE_SECURITY
  [0xc, 'PERMISSION_DENIED'],
]);

const MAX_PUSHBACK_MS = 2 ** 31 - 1;

/**
 * The proxy's own answer to a gRPC call that it does not forward: trailers only, so that every client reads the status
 * and message as it would the service's own.
 */
export function grpcRefusalOf(error: SidecarError<ProxyErrorCode>): OwnAnswer {
  const retryAfter = retryAfterSeconds(error);
  return {
    status: 200,
    reason: 'OK',
    fields: [
      'content-type',
      'application/grpc',
      'grpc-status',
      String(GRPC_STATUS[statusOf(error)]),
      'grpc-message',
      percentEncoded(error.message),
      ERROR_FIELD,
      error.code,
      // gRFC A6: a client whose policy allows a retry waits exactly this long.
      ...(retryAfter === undefined
        ? []
        : ['grpc-retry-pushback-ms', String(Math.min(retryAfter * 1000, MAX_PUSHBACK_MS))]),
    ],
    body: '',
    closes: false,
  };
}

/** A reset by an HTTP/2 upstream means what it would mean to the client. */
function statusOf(error: SidecarError<ProxyErrorCode>): GrpcStatusName {
  if (error instanceof UpstreamReset) return STATUS_OF_RESET.get(error.http2Code) ?? 'INTERNAL';
  return ERRORS[error.code].grpc;
}

/** A message for `grpc-message`: UTF-8, percent-encoded except for printable ASCII other than `%`; cut at a character. */
function percentEncoded(message: string): string {
  let encoded = '';
  let whole = 0;
  for (const octet of Buffer.from(message.slice(0, MESSAGE_BYTES))) {
    const continues = (octet & 0xc0) === 0x80;
    if (!continues) whole = encoded.length;
    const isPlain = octet >= 0x20 && octet <= 0x7e && octet !== PERCENT;
    encoded += isPlain ? String.fromCharCode(octet) : `%${octet.toString(16).toUpperCase().padStart(2, '0')}`;
    if (encoded.length > MESSAGE_BYTES) return encoded.slice(0, whole).trim();
  }
  return encoded.trim();
}
