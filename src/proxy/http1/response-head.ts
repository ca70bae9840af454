import { CR, endOfRun, FIELD_VALUE, isLineEnd, SP } from '../http/octets.ts';
import { announcesBody, type ControlFields } from './control-fields.ts';
import type { FieldLines } from './field-lines.ts';
import { readFieldSection } from './field-section.ts';
import type { HeadLimits } from './head-limits.ts';
import type { KnownSection } from './known-section.ts';
import type { RefusalReason } from './message-refused.ts';
import { minorVersionOf } from './minor-version.ts';

/** How its body is framed depends on the request: `frameResponse`. */
export interface ResponseHead extends ControlFields {
  /** 100 to 999: codes from 600 up have no meaning (RFC 9110 §15) but exist, and do not touch framing. */
  readonly status: number;
  /** Reason phrase; may be empty. */
  readonly reason: string;
  readonly minorVersion: 0 | 1;
  readonly fields: FieldLines;
  /** Whether another answer may follow on the connection once this one has ended by itself (RFC 9112 §9.3). */
  readonly persistent: boolean;
}

interface StatusLine {
  readonly status: number;
  readonly reason: string;
  readonly minorVersion: 0 | 1;
  /** Index in the octets of the CRLF that ends it. */
  readonly end: number;
}

/** Parses one response head (RFC 9112 §4, §5) that lies in `bytes[start..end)` and ends with its first empty line. */
export function parseResponseHead(
  bytes: Buffer,
  start: number,
  end: number,
  limits: HeadLimits,
  known?: KnownSection,
): ResponseHead | RefusalReason {
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
      // Servers that announce a body of a 204 may send one.
      !(status === 204 && announcesBody(control)),
    contentLength,
    chunked,
    host,
    connectionOptions,
  };
}

/**
 * Parses the status line that starts at `bytes[start]` and is ended by CRLF.
 *
 * One leniency: the space after the status code may be missing when there is no reason phrase, because servers leave
 * it out and no reader takes the line for another.
 *
 * @param text from there on, as latin1
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

/** Three digits, the first not zero. */
function statusAt(bytes: Buffer, at: number): number | undefined {
  let status = 0;
  for (let index = at; index < at + 3; index++) {
    const digit = (bytes[index] as number) - 0x30;
    if (!(digit >= 0 && digit <= 9)) return undefined;
    status = status * 10 + digit;
  }
  return status >= 100 ? status : undefined;
}
