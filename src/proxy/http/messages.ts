import { type Fields, fieldValues } from './fields.ts';
import { flatString } from './flat-string.ts';

/** Servers send one or two. */
const MAX_INTERIM_ANSWERS = 64;

/** Of a field besides its octets (RFC 9113 §6.5.2 says 32). */
const OVERHEAD_BYTES = 16;

/** Interim answers pass even to an app that does not read: together they have the room of one head. */
export class InterimResponses {
  #count = 0;
  #bytes = 0;

  /**
   * @param maxBytes of all their fields.
   * @returns whether they are too many.
   */
  isFlood(fields: Fields, maxBytes: number): boolean {
    this.#count += 1;
    for (const text of fields) this.#bytes += text.length + OVERHEAD_BYTES;
    return this.#count > MAX_INTERIM_ANSWERS || this.#bytes > maxBytes;
  }
}

export type Protocol = 'http1' | 'h2';

export const OTHER_METHOD = '_OTHER';

/** Labels of metrics (RFC 9110 §9.3, RFC 5789); clients may send any method. */
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

/** 0 (`_OTHER`) for an unknown method. */
export function methodIndexOf(method: string): number {
  return METHOD_INDEX.get(method) ?? 0;
}

export function knownMethod(method: string): string {
  return KNOWN_METHODS[methodIndexOf(method)] as string;
}

/** Without gRPC-Web, which is HTTP for browsers. */
const GRPC_MEDIA_TYPE = /^application\/grpc(?:$|[+;\t ])/i;

/** HTTP/1.1 carries none. */
export function isGrpcCall({ protocol, fields }: { protocol: Protocol; fields: Fields }): boolean {
  return protocol === 'h2' && isGrpc(fields);
}

export function isGrpc(fields: Fields): boolean {
  const types = fieldValues(fields, 'content-type');
  return types.length === 1 && GRPC_MEDIA_TYPE.test(types[0] as string);
}

export const REQUEST_ID_FIELD = 'x-request-id';

/** Safe in logs and answers. */
const ACCEPTABLE_ID = /^[\w.:=+/@-]{1,128}$/;

/** The app's request id; undefined if there is none, several, or an unacceptable one. */
export function givenRequestId(fields: Fields): string | undefined {
  const [id, ...others] = fieldValues(fields, REQUEST_ID_FIELD);
  return id !== undefined && others.length === 0 && ACCEPTABLE_ID.test(id) ? id : undefined;
}

export const TRACEPARENT_FIELD = 'traceparent';
export const TRACESTATE_FIELD = 'tracestate';

/** W3C Trace Context, level 1. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits, of the sender. */
  readonly spanId: string;
  readonly sampled: boolean;
}

/** Later versions may add more behind a dash. */
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

const SAMPLED = 0x01;

/** Undefined if there is no `traceparent`, or one to be ignored (§3.2.2). */
export function traceContextOf(fields: Fields): TraceContext | undefined {
  const [value, ...others] = fieldValues(fields, TRACEPARENT_FIELD);
  if (value === undefined || others.length > 0) return undefined;
  const [, version = '', traceId = '', spanId = '', flags = '', more] = TRACEPARENT.exec(value) ?? [];
  if (version === '' || version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  // Copied, because spans and exemplars keep them.
  return {
    traceId: flatString(traceId),
    spanId: flatString(spanId),
    sampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0,
  };
}

/** Version 00. */
export function traceparentOf({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}

/**
 * Schemes that authenticate a connection (RFC 4559): later requests on it count as the same user's. Matched as a scheme
 * in a list, not as a parameter.
 */
const CONNECTION_SCHEME = /(?:^|,)[\t ]*(?:ntlm|nego[a-z0-9]*|kerberos|credssp)(?=[\t ,]|$)/i;

export function authenticatesConnection(fields: Fields): boolean {
  return fieldValues(fields, 'authorization').some(namesConnectionScheme);
}

export function challengesConnection(fields: Fields): boolean {
  return [...fieldValues(fields, 'www-authenticate'), ...fieldValues(fields, 'proxy-authenticate')].some(
    namesConnectionScheme,
  );
}

function namesConnectionScheme(value: string): boolean {
  return CONNECTION_SCHEME.test(value);
}
