import { CR, endOfRun, isLineEnd, SP, TARGET, TOKEN, UPPER_CASE_TOKEN } from '../http/octets.ts';
import { formOf, type TargetForm } from '../http/target-form.ts';
import { type BodyFraming, frameRequest } from './body-framing.ts';
import type { ControlFields } from './control-fields.ts';
import type { FieldLines } from './field-lines.ts';
import { readFieldSection } from './field-section.ts';
import type { HeadLimits } from './head-limits.ts';
import type { KnownSection } from './known-section.ts';
import type { RefusalReason } from './message-refused.ts';
import { minorVersionOf } from './minor-version.ts';

export interface RequestHead extends ControlFields {
  readonly protocol: 'http1';
  readonly method: string;
  readonly target: string;
  readonly targetForm: TargetForm;
  readonly minorVersion: 0 | 1;
  readonly fields: FieldLines;
  readonly framing: BodyFraming;
  /** Whether another request may follow on the connection (RFC 9112 §9.3). */
  readonly persistent: boolean;
}

interface RequestLine {
  readonly method: string;
  readonly target: string;
  readonly targetForm: TargetForm;
  readonly minorVersion: 0 | 1;
  /** Index in the octets of the CRLF that ends it. */
  readonly end: number;
}

const MAX_METHOD_BYTES = 32;

/**
 * Methods are case-sensitive (RFC 9110 §9.1). A peer that folds case would take these for the real ones: it would frame
 * its answers differently, or send credentials back.
 */
const LOOKALIKE = /^(?:HEAD|CONNECT|TRACE)$/i;

/**
 * Parses one request head (RFC 9112 §3, §5) that lies in `bytes[start..end)` and ends with its first empty line.
 *
 * The method is free, but for those above in another case. A CONNECT that announces a body is refused: what follows its
 * head is either the tunnel's or nothing. HTTP/1.0 requests never persist, as the RFC has it for proxies.
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

/**
 * Parses the request line that starts at `bytes[start]` and is ended by CRLF.
 * @param text from there on, as latin1
 */
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
  // The most common method needs no string of its own.
  const method = text.startsWith('GET ') ? 'GET' : text.slice(0, methodEnd - start);
  if (methodEnd !== upperEnd && LOOKALIKE.test(method)) return 'method_lookalike';
  const target = text.slice(targetStart - start, targetEnd - start);
  const targetForm = formOf(method, target);
  if (targetForm === undefined) return 'target_malformed';
  return { method, target, targetForm, minorVersion, end };
}
