import { randomUUID } from 'node:crypto';
import { ERRORS, type ProxyErrorCode, type SidecarError } from '../../platform/errors.ts';
import { GRPC_STATUS, type GrpcStatus, type GrpcStatusName } from '../../platform/grpc-status.ts';
import { TokenUnavailable } from '../../token/bearer-source.ts';
import { type Fields, fieldValues, lowerCaseName } from '../http/fields.ts';
import { givenRequestId, isGrpcCall, type Protocol, REQUEST_ID_FIELD } from '../http/messages.ts';
import { serializeRequestHead, serializeResponseHead } from '../http1/serialize.ts';
import { type IncomingRequest, type LocalReply, UpstreamReset } from '../streams/contract.ts';
import { ERROR_FIELD } from '../streams/header-rules.ts';
import { CallerHeldBack } from './authorizer.ts';
import type { ListenerContext } from './listener-context.ts';

export function localReplyFor(error: SidecarError<ProxyErrorCode>, isGrpc: boolean): LocalReply {
  return isGrpc ? grpcRefusalOf(error) : problemOf(error);
}

interface ProblemReply extends LocalReply {
  readonly code: ProxyErrorCode;
}

/** Required with each 401 (RFC 9110 §15.5.2). */
const CHALLENGE = ['www-authenticate', 'Bearer realm="token-sidecar"'];

/** RFC 9110 §15, RFC 6585 §5, RFC 5842 §7.2. */
const REASONS: Readonly<Record<(typeof ERRORS)[ProxyErrorCode]['status'], string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  408: 'Request Timeout',
  413: 'Content Too Large',
  414: 'URI Too Long',
  421: 'Misdirected Request',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
  508: 'Loop Detected',
};

/** Problem details (RFC 9457). The error's message becomes the `detail`: no secret and no field value may be in it. */
export function problemOf(error: SidecarError<ProxyErrorCode>): ProblemReply {
  const row = ERRORS[error.code];
  const { status, title } = row;
  const body = asciiJson({ type: 'about:blank', title, status, detail: error.message, code: error.code });
  const retryAfter = retryAfterSeconds(error);
  return {
    status,
    reason: REASONS[status],
    code: error.code,
    fields: [
      'content-type',
      'application/problem+json',
      'content-length',
      String(body.length),
      'cache-control',
      'no-store',
      ERROR_FIELD,
      error.code,
      ...(retryAfter === undefined ? [] : ['retry-after', String(retryAfter)]),
      ...(status === 401 ? CHALLENGE : []),
    ],
    body,
    closes: 'closes' in row,
  };
}

/** One byte a character: the length is known, and any connection can carry it. */
function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** gRPC clients should accept 8 KiB of trailers in all. */
const MESSAGE_BYTES = 1024;

const PERCENT = 0x25;

/** By RST_STREAM code (PROTOCOL-HTTP2.md, *Errors*); all others are INTERNAL. */
const STATUS_OF_RESET: ReadonlyMap<number, GrpcStatusName> = new Map([
  // REFUSED_STREAM
  [0x7, 'UNAVAILABLE'],
  // CANCEL: the caller's deadline has passed.
  [0x8, 'CANCELLED'],
  // ENHANCE_YOUR_CALM
  [0xb, 'RESOURCE_EXHAUSTED'],
  // INADEQUATE_SECURITY
  [0xc, 'PERMISSION_DENIED'],
]);

const MAX_PUSHBACK_MS = 2 ** 31 - 1;

/** Trailers only, which every client reads as the service's own status. */
function grpcRefusalOf(error: SidecarError<ProxyErrorCode>): LocalReply {
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
      // gRFC A6: a client that retries waits exactly this long.
      ...(retryAfter === undefined
        ? []
        : ['grpc-retry-pushback-ms', String(Math.min(retryAfter * 1000, MAX_PUSHBACK_MS))]),
    ],
    body: '',
    closes: false,
  };
}

function statusOf(error: SidecarError<ProxyErrorCode>): GrpcStatusName {
  if (error instanceof UpstreamReset) return STATUS_OF_RESET.get(error.http2Code) ?? 'INTERNAL';
  return ERRORS[error.code].grpc;
}

/** For `grpc-message`: UTF-8, percent-encoded except for printable ASCII other than `%`; cut at a character. */
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

/** Undefined if unknown. */
function retryAfterSeconds(error: SidecarError<ProxyErrorCode>): number | undefined {
  if (error instanceof TokenUnavailable || error instanceof CallerHeldBack) return error.retryAfterSeconds;
  return error.code === 'overloaded' ? 1 : undefined;
}

const COUNT = /^[0-9]{1,15}$/;

/** TRACE must not reflect credentials (RFC 9110 §9.3.8). */
const NOT_REFLECTED: ReadonlySet<string> = new Set([
  'authorization',
  'cookie',
  'dpop',
  'proxy-authorization',
]);

/**
 * With Max-Forwards of an OPTIONS or TRACE counted down (RFC 9110 §7.6.2). Undefined if it is used up: the request must
 * not be forwarded.
 */
export function countedDown(request: Pick<IncomingRequest, 'method' | 'fields'>): Fields | undefined {
  const { method, fields } = request;
  if (method !== 'OPTIONS' && method !== 'TRACE') return fields;
  const counts = fieldValues(fields, 'max-forwards').filter((value) => COUNT.test(value));
  if (counts.length === 0) return fields;
  if (counts.some((count) => Number(count) === 0)) return undefined;
  return fields.map((part, at) => {
    const isCount =
      at % 2 === 1 && lowerCaseName(fields[at - 1] as string) === 'max-forwards' && COUNT.test(part);
    return isCount ? String(Number(part) - 1) : part;
  });
}

/** To OPTIONS an empty 200, to TRACE the request as it arrived (RFC 9110 §9.3.7, §9.3.8), as HTTP/1.1. */
export function lastHopAnswer(request: Pick<IncomingRequest, 'method' | 'target' | 'fields'>): LocalReply {
  const { method, target, fields } = request;
  const body = method === 'TRACE' ? serializeRequestHead(method, target, reflected(fields)) : '';
  const type = method === 'TRACE' ? ['content-type', 'message/http'] : [];
  return {
    status: 200,
    reason: 'OK',
    fields: [...type, 'content-length', String(body.length), 'cache-control', 'no-store'],
    body,
    closes: false,
  };
}

function reflected(fields: Fields): string[] {
  return fields.filter((_, at) => !NOT_REFLECTED.has(lowerCaseName(fields[at - (at % 2)] as string)));
}

/** Decimal digits without leading zeros. */
const STATUS = /^(?:[0-9]|1[0-6])$/;

/** Undefined if there is none. */
export function grpcStatusOf(fields: Fields): GrpcStatus | undefined {
  const values = fieldValues(fields, 'grpc-status');
  if (values.length === 0) return undefined;
  const [value] = values;
  return values.length === 1 && STATUS.test(value as string) ? Number(value) : 'other';
}

interface Unread {
  readonly code: ProxyErrorCode;
  readonly protocol: Protocol;
  /** Empty if the head could not be read that far. */
  readonly fields: Fields;
}

/**
 * Counts and logs an unreadable request.
 * @returns the answer, with the id that is in the log.
 */
export function turnedAway(
  { noRoute, snapshot }: Pick<ListenerContext, 'noRoute' | 'snapshot'>,
  own: LocalReply,
  { code, protocol, fields }: Unread,
): LocalReply {
  const requestId = givenRequestId(fields) ?? randomUUID();
  const grpcStatus = isGrpcCall({ protocol, fields }) ? grpcStatusOf(own.fields) : undefined;
  noRoute.turnedAway(code, own.status, protocol);
  if (grpcStatus !== undefined) noRoute.grpcEnded(grpcStatus);
  const { status, body } = own;
  snapshot().logUnread?.({
    requestId,
    protocol,
    status,
    grpcStatus,
    error: code,
    responseBytes: body.length,
  });
  return { ...own, fields: [...own.fields, REQUEST_ID_FIELD, requestId] };
}

/**
 * @param method an answer to HEAD has no body.
 * @param closes whether the connection ends with it.
 */
export function localReplyMessage(own: LocalReply, method: string, closes: boolean): string {
  const fields = closes ? [...own.fields, 'connection', 'close'] : own.fields;
  const head = serializeResponseHead(own.status, own.reason, fields);
  return method === 'HEAD' ? head : head + own.body;
}
