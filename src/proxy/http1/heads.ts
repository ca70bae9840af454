/** The request line (RFC 9112 §3), the status line (§4), and the end of the body (§6.3). */

import {
  CR,
  endOfRun,
  FIELD_VALUE,
  formOf,
  isLineEnd,
  SP,
  TARGET,
  type TargetForm,
  TOKEN,
  UPPER_CASE_TOKEN,
} from '../http/syntax.ts';
import {
  announcesBody,
  type ControlFields,
  type FieldLines,
  type HeadLimits,
  type KnownSection,
  readFieldSection,
} from './field-section.ts';
import { ParseError, type RefusalReason } from './parse-error.ts';

export interface RequestHead extends ControlFields {
  readonly protocol: 'http1';
  readonly method: string;
  readonly target: string;
  readonly targetForm: TargetForm;
  readonly minorVersion: 0 | 1;
  readonly fields: FieldLines;
  readonly framing: BodyFraming;
  /** RFC 9112 §9.3 */
  readonly persistent: boolean;
}

interface RequestLine {
  readonly method: string;
  readonly target: string;
  readonly targetForm: TargetForm;
  readonly minorVersion: 0 | 1;
  /** Index of the CRLF that ends it. */
  readonly end: number;
}

const MAX_METHOD_BYTES = 32;

/**
 * Methods are case-sensitive (RFC 9110 §9.1). A peer that folds case would misframe answers, or return
 * credentials.
 */
const LOOKALIKE = /^(?:HEAD|CONNECT|TRACE)$/i;

/**
 * RFC 9112 §3, §5. A CONNECT with a body is refused, since a tunnel follows. HTTP/1.0 never persists, as for
 * all proxies.
 */
export function parseRequestHead(
  bytes: Buffer,
  start: number,
  end: number,
  limits: HeadLimits,
  known?: KnownSection,
): RequestHead | RefusalReason {
  const lineEnd = bytes.indexOf(CR, start);
  const line = parseRequestLine(bytes, start, bytes.toString('latin1', start, lineEnd), limits);
  if (typeof line === 'string') return line;
  const { method, target, targetForm, minorVersion } = line;

  const section = readFieldSection('request', {
    bytes,
    start: line.end + 2,
    end,
    minorVersion,
    maxFields: limits.headerCount,
    known: minorVersion === 1 ? known : undefined,
  });
  if (typeof section === 'string') return section;
  const { fields, control } = section;
  const { contentLength, chunked, host, connectionOptions } = control;
  if (minorVersion === 1 && host === undefined) return 'host_missing';
  if (method === 'CONNECT' && (chunked || contentLength !== undefined)) return 'body_not_allowed';

  return {
    protocol: 'http1',
    method,
    target,
    targetForm,
    minorVersion,
    fields,
    framing: frameRequest(control),
    persistent: minorVersion === 1 && !connectionOptions.includes('close'),
    contentLength,
    chunked,
    host,
    connectionOptions,
  };
}

/** @param text from `start` on, as latin1 */
export function parseRequestLine(
  bytes: Buffer,
  start: number,
  text: string,
  limits: HeadLimits,
): RequestLine | RefusalReason {
  if (isLineEnd(bytes, start)) return 'empty_line_before_start';
  const upperEnd = endOfRun(UPPER_CASE_TOKEN, bytes, start);
  const methodEnd = bytes[upperEnd] === SP ? upperEnd : endOfRun(TOKEN, bytes, upperEnd);
  if (methodEnd === start || methodEnd - start > MAX_METHOD_BYTES || bytes[methodEnd] !== SP) {
    return 'method_malformed';
  }
  const targetStart = methodEnd + 1;
  const targetEnd = endOfRun(TARGET, bytes, targetStart);
  if (targetEnd === targetStart) return 'target_malformed';
  if (targetEnd - targetStart > limits.targetBytes) return 'target_too_long';
  if (bytes[targetEnd] !== SP) return bytes[targetEnd] === CR ? 'version_unsupported' : 'target_octet';

  const minorVersion = minorVersionOf(text, targetEnd + 1 - start);
  const end = targetEnd + 9;
  if (minorVersion === undefined || !isLineEnd(bytes, end)) return 'version_unsupported';
  const method = text.startsWith('GET ') ? 'GET' : text.slice(0, methodEnd - start);
  if (methodEnd !== upperEnd && LOOKALIKE.test(method)) return 'method_lookalike';
  const target = text.slice(targetStart - start, targetEnd - start);
  const targetForm = formOf(method, target);
  if (targetForm === undefined) return 'target_malformed';
  return { method, target, targetForm, minorVersion, end };
}

/** `frameResponse` frames its body, by the request. */
export interface Http1ResponseHead extends ControlFields {
  /** 100 to 999 (RFC 9110 §15). */
  readonly status: number;
  /** May be empty. */
  readonly reason: string;
  readonly minorVersion: 0 | 1;
  readonly fields: FieldLines;
  /** RFC 9112 §9.3 */
  readonly persistent: boolean;
}

interface StatusLine {
  readonly status: number;
  readonly reason: string;
  readonly minorVersion: 0 | 1;
  /** Index of the CRLF that ends it. */
  readonly end: number;
}

/** RFC 9112 §4, §5 */
export function parseResponseHead(
  bytes: Buffer,
  start: number,
  end: number,
  limits: HeadLimits,
  known?: KnownSection,
): Http1ResponseHead | RefusalReason {
  const lineEnd = bytes.indexOf(CR, start);
  const line = parseStatusLine(bytes, start, bytes.toString('latin1', start, lineEnd));
  if (typeof line === 'string') return line;
  const { status, reason, minorVersion } = line;

  const section = readFieldSection('response', {
    bytes,
    start: line.end + 2,
    end,
    minorVersion,
    maxFields: limits.headerCount,
    known: minorVersion === 1 ? known : undefined,
  });
  if (typeof section === 'string') return section;
  const { fields, control } = section;
  const { contentLength, chunked, host, connectionOptions } = control;

  return {
    status,
    reason,
    minorVersion,
    fields,
    persistent:
      !connectionOptions.includes('close') &&
      (minorVersion === 1 || connectionOptions.includes('keep-alive')) &&
      // Some servers send a 204's announced body.
      !(status === 204 && announcesBody(control)),
    contentLength,
    chunked,
    host,
    connectionOptions,
  };
}

/**
 * Servers may omit the space after the code together with the reason.
 * @param text from `start` on, as latin1
 */
export function parseStatusLine(bytes: Buffer, start: number, text: string): StatusLine | RefusalReason {
  if (isLineEnd(bytes, start)) return 'empty_line_before_start';
  const minorVersion = minorVersionOf(text, 0);
  if (minorVersion === undefined || bytes[start + 8] !== SP) return 'version_unsupported';
  const status = statusAt(bytes, start + 9);
  if (status === undefined) return 'status_malformed';

  const reasonStart = start + 13;
  let end = start + 12;
  if (bytes[end] === SP) end = endOfRun(FIELD_VALUE, bytes, reasonStart);
  if (!isLineEnd(bytes, end)) return 'reason_malformed';
  return { status, reason: text.slice(reasonStart - start, end - start), minorVersion, end };
}

function statusAt(bytes: Buffer, at: number): number | undefined {
  let status = 0;
  for (let index = at; index < at + 3; index++) {
    const digit = (bytes[index] as number) - 0x30;
    if (!(digit >= 0 && digit <= 9)) return undefined;
    status = status * 10 + digit;
  }
  return status >= 100 ? status : undefined;
}

/** RFC 9112 §2.3; undefined for another major version. */
function minorVersionOf(text: string, at: number): 0 | 1 | undefined {
  if (text.startsWith('HTTP/1.1', at)) return 1;
  return text.startsWith('HTTP/1.0', at) ? 0 : undefined;
}

/** RFC 9112 §6.3 */
export type BodyFraming =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  /** The body ends with the connection; answers only. */
  | { readonly kind: 'close' }
  /** Follows a 101, or a 2xx to CONNECT. */
  | { readonly kind: 'tunnel' };

const NONE: BodyFraming = { kind: 'none' };
const CHUNKED: BodyFraming = { kind: 'chunked' };
const CLOSE: BodyFraming = { kind: 'close' };
const TUNNEL: BodyFraming = { kind: 'tunnel' };

/** §6.3, rule 7 */
function frameRequest(control: ControlFields): BodyFraming {
  return announced(control) ?? NONE;
}

/**
 * §6.3, rules 1 to 8. No answer may follow a 204 that announces a body. A 205 is framed like others; do not
 * relay its body.
 * @throws {ParseError} `interim_closes` for a 1xx other than 101 after which nothing may follow.
 * @throws {ParseError} `body_not_allowed` for a 1xx, 205 or 2xx to CONNECT that announces a body, since
 * readers disagree. `Content-Length: 0` is allowed.
 */
export function frameResponse(head: Http1ResponseHead, requestMethod: string): BodyFraming {
  const { status } = head;
  const tunnels = status === 101 || (requestMethod === 'CONNECT' && status >= 200 && status < 300);
  if (status < 200 || tunnels) {
    if (announcesBody(head)) throw new ParseError('response', 'body_not_allowed');
    if (status < 200 && !tunnels && !head.persistent) throw new ParseError('response', 'interim_closes');
    return tunnels ? TUNNEL : NONE;
  }
  if (requestMethod === 'HEAD' || status === 204 || status === 304) return NONE;
  if (status === 205 && (head.contentLength ?? 0) > 0) throw new ParseError('response', 'body_not_allowed');
  return announced(head) ?? CLOSE;
}

function announced(control: ControlFields): BodyFraming | undefined {
  if (control.chunked) return CHUNKED;
  return control.contentLength === undefined ? undefined : { kind: 'length', bytes: control.contentLength };
}
