/**
 * The fields that decide how a connection is read on: Content-Length, Transfer-Encoding, Connection and Host. They are
 * read once, here, with one meaning; whatever another reader could take differently is refused, and so are names that
 * equal theirs where names become variables (CGI, WSGI: `-` and `_` are one).
 */

import { isAuthority } from '../http/authority.ts';
import { parseContentLength } from '../http/content-length.ts';
import { isNamed } from '../http/field-names.ts';
import { consistsOf, isWhitespace, TOKEN } from '../http/octets.ts';
import type { MessageKind, RefusalReason } from './message-refused.ts';

export interface ControlFields {
  /** Octets, if Content-Length was there. */
  readonly contentLength: number | undefined;
  /** Whether `Transfer-Encoding: chunked` was there; never together with `contentLength`. */
  readonly chunked: boolean;
  /** Value of a request's one Host field; in an answer the field has no meaning and is ignored. */
  readonly host: string | undefined;
  /** Options of all Connection fields, in lower case (RFC 9110 §7.6.1), and `close` if Proxy-Connection has it. */
  readonly connectionOptions: readonly string[];
}

const NO_OPTIONS: readonly string[] = [];
const KEEP_ALIVE: readonly string[] = ['keep-alive'];
const CLOSE: readonly string[] = ['close'];

/**
 * Reads the control fields of a message of version HTTP/1.`minorVersion`, and normalises the length in `fields`: a
 * repetition in an answer and leading zeros are removed.
 */
export function readControlFields(
  kind: MessageKind,
  fields: string[],
  minorVersion: 0 | 1,
): ControlFields | RefusalReason {
  let contentLength: number | undefined;
  let chunked = false;
  let host: string | undefined;
  let connectionOptions = NO_OPTIONS;

  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as string;
    // The length rules out almost every field before a string is made for the comparison.
    switch (name.length) {
      case 4:
        if (kind === 'request' && isNamed(name, 'host')) {
          if (host !== undefined) return 'host_repeated';
          host = fields[at + 1] as string;
          if (!isAuthority(host)) return 'host_malformed';
        }
        break;
      case 10:
        if (isNamed(name, 'connection')) {
          const options = parseConnectionOptions(fields[at + 1] as string);
          if (options === undefined) return 'connection_malformed';
          connectionOptions = connectionOptions.length === 0 ? options : [...connectionOptions, ...options];
        }
        break;
      case 14:
        if (isNamed(name, 'content-length')) {
          const length = parseContentLength(fields[at + 1] as string);
          if (length === undefined) return 'length_malformed';
          if (contentLength !== undefined) {
            // Chained servers may send it twice (RFC 9110 §8.6). A request that does is crafted to be read in two ways.
            if (kind === 'request' || length !== contentLength) return 'length_repeated';
            fields.splice(at, 2);
            at -= 2;
            break;
          }
          contentLength = length;
          fields[at + 1] = String(length);
        } else if (isNamed(name, 'content_length')) {
          return 'framing_lookalike';
        }
        break;
      case 16:
        // Non-standard (RFC 9112 §C.2.2), but some readers close on it; closing does no harm to the others.
        if (isNamed(name, 'proxy-connection')) {
          const options = parseConnectionOptions(fields[at + 1] as string);
          if (options === undefined) return 'connection_malformed';
          if (options.includes('close')) connectionOptions = [...connectionOptions, ...CLOSE];
        }
        break;
      case 17:
        if (isNamed(name, 'transfer-encoding')) {
          if (chunked || (fields[at + 1] as string).toLowerCase() !== 'chunked') return 'coding_unknown';
          chunked = true;
        } else if (isNamed(name, 'transfer_encoding')) {
          return 'framing_lookalike';
        }
        break;
    }
  }

  if (chunked && contentLength !== undefined) return 'length_with_coding';
  if (chunked && minorVersion === 0) return 'coding_in_http_1_0';
  return { contentLength, chunked, host, connectionOptions };
}

/** Whether they say that octets of a body follow. */
export function announcesBody({ chunked, contentLength = 0 }: ControlFields): boolean {
  return chunked || contentLength > 0;
}

/** `#connection-option` (RFC 9110 §7.6.1, §5.6.1); undefined when it is not that. */
function parseConnectionOptions(value: string): readonly string[] | undefined {
  const lower = value.toLowerCase();
  if (lower === 'keep-alive') return KEEP_ALIVE;
  if (lower === 'close') return CLOSE;
  const options: string[] = [];
  for (const element of lower.split(',')) {
    const option = withoutWhitespace(element);
    if (option === '') continue;
    if (!consistsOf(TOKEN, option)) return undefined;
    options.push(option);
  }
  return options;
}

/** Strips SP and HTAB from both ends; `trim` strips more, and a regular expression takes quadratic time. */
function withoutWhitespace(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isWhitespace(text.charCodeAt(start))) start++;
  while (end > start && isWhitespace(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}
