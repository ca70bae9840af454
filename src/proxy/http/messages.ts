/** What a message is: version, method, gRPC call or not, its ids, and whether it authenticates its connection. */

import { type Fields, fieldValues } from './fields.ts';
import { ownText } from './own-text.ts';

/** Servers send one or two; this many before the final one are no answer. */
const MAX_INTERIM_ANSWERS = 64;

/** What a name or a value takes besides its octets (RFC 9113 §6.5.2 says 32 for both). */
const OVERHEAD_BYTES = 16;

/** The interim answers to one request. They pass at once, even to an app that does not read: all have the room of one head. */
export class InterimAnswers {
  #count = 0;
  #bytes = 0;

  /** Counts one more. @param maxBytes of all their fields. @returns whether they are too many. */
  isFlood(fields: Fields, maxBytes: number): boolean {
    this.#count += 1;
    for (const text of fields) this.#bytes += text.length + OVERHEAD_BYTES;
    return this.#count > MAX_INTERIM_ANSWERS || this.#bytes > maxBytes;
  }
}

/** The HTTP version that a message came by, or leaves by. */
export type Protocol = 'http1' | 'h2';

export const OTHER_METHOD = '_OTHER';

/** Clients may send any method; counts by method use one of these (RFC 9110 §9.3, RFC 5789). */
export const KNOWN_METHODS = [
  OTHER_METHOD,
  'CONNECT',
  'DELETE',
  'GET',
  'HEAD',
  'OPTIONS',
  'PATCH',
  'POST',
  'PUT',
  'TRACE',
] as const;

const METHOD_INDEX: ReadonlyMap<string, number> = new Map(
  KNOWN_METHODS.map((method, index) => [method, index]),
);

/** Its index in `KNOWN_METHODS`; that of `_OTHER` for a method that is none of them. */
export function methodIndexOf(method: string): number {
  return METHOD_INDEX.get(method) ?? 0;
}

export function knownMethod(method: string): string {
  return KNOWN_METHODS[methodIndexOf(method)] as string;
}

/** gRPC's own media type, with or without a message format; not gRPC-Web's, which is HTTP for browsers. */
const GRPC_MEDIA_TYPE = /^application\/grpc(?:$|[+;\t ])/i;

/** Whether a request is a gRPC call. HTTP/1.1 carries none, and pays nothing for the check. */
export function isGrpcCall({ protocol, fields }: { protocol: Protocol; fields: Fields }): boolean {
  return protocol === 'h2' && isGrpc(fields);
}

/** Whether the message with these fields is a gRPC one. */
export function isGrpc(fields: Fields): boolean {
  const types = fieldValues(fields, 'content-type');
  return types.length === 1 && GRPC_MEDIA_TYPE.test(types[0] as string);
}

/** Identifies a request to apps, proxies and logs. */
export const REQUEST_ID_FIELD = 'x-request-id';

/** Ids that logs and answers may quote: of bounded length, with nothing that could end a line or a field. */
const ACCEPTABLE_ID = /^[\w.:=+/@-]{1,128}$/;

/** The id that the app gave its request; undefined where it gave none, several, or one that is not acceptable. */
export function givenRequestId(fields: Fields): string | undefined {
  const [id, ...others] = fieldValues(fields, REQUEST_ID_FIELD);
  return id !== undefined && others.length === 0 && ACCEPTABLE_ID.test(id) ? id : undefined;
}

export const TRACEPARENT_FIELD = 'traceparent';
export const TRACESTATE_FIELD = 'tracestate';

/** The trace that a request belongs to (W3C Trace Context, level 1). */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** Of the span that sent the request: 16 hexadecimal digits. */
  readonly spanId: string;
  readonly sampled: boolean;
}

/** Version, trace, span and flags; later versions may add more behind a dash. */
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

const SAMPLED = 0x01;

/** What `traceparent` says; undefined where there is none, or one that is to be ignored (§3.2.2). */
export function traceContextOf(fields: Fields): TraceContext | undefined {
  const [value, ...others] = fieldValues(fields, TRACEPARENT_FIELD);
  if (value === undefined || others.length > 0) return undefined;
  const [, version = '', traceId = '', spanId = '', flags = '', more] = TRACEPARENT.exec(value) ?? [];
  if (version === '' || version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  // Copied, because spans awaiting export and exemplars keep them.
  return {
    traceId: ownText(traceId),
    spanId: ownText(spanId),
    sampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0,
  };
}

/** In the format of version 00. */
export function traceparentOf({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}

/**
 * Schemes that authenticate a connection, not a request (RFC 4559): whatever follows on the connection is taken for the
 * same user's. They are NTLM, Negotiate, Nego2 and what else may begin like them, and those that WinRM has beside them:
 * as a scheme of a list, not as the name of a parameter.
 */
const CONNECTION_SCHEME = /(?:^|,)[\t ]*(?:ntlm|nego[a-z0-9]*|kerberos|credssp)(?=[\t ,]|$)/i;

/** Whether a request with these fields authenticates its connection. */
export function authenticatesConnection(fields: Fields): boolean {
  return fieldValues(fields, 'authorization').some(namesConnectionScheme);
}

/** Whether an answer with these fields asks for that, or is a step of it. */
export function challengesConnection(fields: Fields): boolean {
  return [...fieldValues(fields, 'www-authenticate'), ...fieldValues(fields, 'proxy-authenticate')].some(
    namesConnectionScheme,
  );
}

function namesConnectionScheme(value: string): boolean {
  return CONNECTION_SCHEME.test(value);
}
