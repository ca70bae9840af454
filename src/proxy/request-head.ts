/**
 * What a request head must be before anything is done with it. An engine's parser has read it already; this is the
 * part that does not depend on the engine, so that all of them refuse the same requests.
 */

import type { ProxyLimits } from '../config/config.ts';
import { SidecarError } from '../errors.ts';
import { type Fields, fieldValues, listMembers } from './header-rules.ts';
import { type OriginTarget, parseRequestTarget } from './request-target.ts';

export interface RequestHead {
  readonly method: string;
  readonly target: string;
  /** `1.1`, `1.0`, or whatever else the request line said. */
  readonly version: string;
  readonly fields: Fields;
}

export type BodyFraming =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' };

export interface ExaminedRequest extends OriginTarget {
  /** Lower case, without port; undefined only in HTTP/1.0. */
  readonly host: string | undefined;
  readonly framing: BodyFraming;
  /** Protocols the client offers to switch to; undefined when it does not, or may not (RFC 9110 §7.8). */
  readonly upgrade: string | undefined;
}

/**
 * Host name, IPv4 or bracketed IPv6 address, and a port (RFC 9110 §7.2). A reg-name may hold more (RFC 3986 §3.2.2),
 * but percent-encoding and sub-delimiters are what readers of a host disagree on.
 */
const HOST = /^(?<host>\[[0-9a-f:.]+\]|[0-9a-z._-]+)(?::\d{0,5})?$/i;

/**
 * Checks a request head and takes from it what routing and framing need.
 * @throws {SidecarError} `bad_request`, `uri_too_long`, `headers_too_large` or `destination_not_allowed`.
 */
export function examineRequest(head: RequestHead, limits: ProxyLimits): ExaminedRequest {
  if (head.version !== '1.1' && head.version !== '1.0') {
    throw new SidecarError('bad_request', 'the HTTP version must be 1.1 or 1.0');
  }
  const target = parseRequestTarget(head.method, head.target, limits.targetBytes);
  checkSize(head, limits);
  const host = hostOf(head);
  const framing = framingOf(head);
  return {
    ...target,
    host,
    framing,
    upgrade: upgradeOf(head, framing),
  };
}

/**
 * The protocols offered in Upgrade, if switching is open to this request. One with a body is not switched: the
 * server may ignore Upgrade (RFC 9110 §7.8), and where such a body ends is a classic disagreement.
 */
export function upgradeOf(
  head: Pick<RequestHead, 'version' | 'fields'>,
  framing: BodyFraming,
): string | undefined {
  if (head.version !== '1.1' || framing.kind !== 'none') return undefined;
  const options = listMembers(head.fields, 'connection').map((option) => option.toLowerCase());
  if (!options.includes('upgrade')) return undefined;
  const protocols = listMembers(head.fields, 'upgrade');
  return protocols.length === 0 ? undefined : protocols.join(', ');
}

/**
 * How the body is delimited (RFC 9112 §6.3), refusing all that two parsers could read in two ways.
 * @throws {SidecarError} `bad_request`.
 */
export function framingOf(head: Pick<RequestHead, 'version' | 'fields'>): BodyFraming {
  const codings = fieldValues(head.fields, 'transfer-encoding');
  const lengths = fieldValues(head.fields, 'content-length');
  if (codings.length > 0) {
    if (lengths.length > 0) throw ambiguous('both Content-Length and Transfer-Encoding are given');
    if (head.version !== '1.1') throw ambiguous('Transfer-Encoding does not exist in HTTP/1.0');
    if (codings.length > 1 || codings[0]?.toLowerCase() !== 'chunked') {
      throw ambiguous('Transfer-Encoding must be exactly chunked');
    }
    return { kind: 'chunked' };
  }
  const [length] = lengths;
  if (length === undefined) return { kind: 'none' };
  if (lengths.length > 1) throw ambiguous('Content-Length is given more than once');
  const bytes = Number(length);
  if (!/^\d+$/.test(length) || !Number.isSafeInteger(bytes)) {
    throw ambiguous('Content-Length must be one decimal number');
  }
  return bytes === 0 ? { kind: 'none' } : { kind: 'length', bytes };
}

function checkSize(head: RequestHead, limits: ProxyLimits): void {
  const count = head.fields.length / 2;
  if (count > limits.headerCount) {
    throw new SidecarError('headers_too_large', `more than ${limits.headerCount} header fields`);
  }
  let bytes = head.method.length + head.target.length + ' HTTP/1.1'.length + 1 + 2 + 2;
  for (const part of head.fields) bytes += part.length + 2;
  if (bytes > limits.headerBytes) {
    throw new SidecarError(
      'headers_too_large',
      `the header section is larger than ${limits.headerBytes} bytes`,
    );
  }
}

function hostOf(head: RequestHead): string | undefined {
  const hosts = fieldValues(head.fields, 'host');
  const [value] = hosts;
  if (value === undefined) {
    if (head.version === '1.0') return undefined;
    throw new SidecarError('bad_request', 'Host is missing');
  }
  if (hosts.length > 1) throw new SidecarError('bad_request', 'Host is given more than once');
  const host = HOST.exec(value)?.groups?.['host'];
  if (host === undefined)
    throw new SidecarError('bad_request', 'Host is not a host name with an optional port');
  return host.toLowerCase();
}

function ambiguous(message: string): SidecarError<'bad_request'> {
  return new SidecarError('bad_request', message);
}
