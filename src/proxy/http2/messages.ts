/** Heads of requests (RFC 9113 §8.3.1, §8.5) and answers (§8.3.2). */

import { MadeOf } from '../http/lasting-fields.ts';
import { consistsOf, isAuthority, isAuthorityWithPort, TARGET, TOKEN } from '../http/syntax.ts';
import type { FaultReason } from './errors.ts';
import { type Fields, isPseudo, readFields } from './fields.ts';

interface Common {
  /** Without pseudo-fields and Host. */
  readonly fields: Fields;
  readonly contentLength: number | undefined;
}

interface OrdinaryRequest extends Common {
  readonly kind: 'ordinary';
  readonly method: string;
  /** In lower case. */
  readonly scheme: string;
  /** The value of Host if `:authority` is missing. */
  readonly authority: string;
  /** Begins with `/`, or is `*` for OPTIONS. */
  readonly path: string;
}

/** A tunnel to `authority`, which has a port. */
interface ConnectRequest extends Common {
  readonly kind: 'connect';
  readonly method: 'CONNECT';
  readonly authority: string;
}

export type RequestSection = OrdinaryRequest | ConnectRequest;

interface RequestRules {
  /** Octets of `:path`. */
  readonly targetBytes: number;
}

const MAX_METHOD_BYTES = 32;

/** A peer that folds case would misframe answers, or return credentials. */
const LOOKALIKE = /^(?:HEAD|CONNECT|TRACE)$/i;
const UPPER_CASE = /^[A-Z]+$/;

const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*$/;

const DEFAULT_PORT = { http: /:(?:80)?$/, https: /:(?:443)?$/ } as const;

const KNOWN_REQUESTS = new MadeOf<{ readonly rules: RequestRules; readonly section: RequestSection }>();

/**
 * As strict as HTTP/1.1, since the same servers read both.
 * @returns what is malformed. `path_too_long` and `host_differs` may be answered.
 */
export function readRequest(fields: Fields, rules: RequestRules): RequestSection | FaultReason {
  const known = KNOWN_REQUESTS.get(fields);
  if (known?.rules === rules) return known.section;
  const section = parseRequest(fields, rules);
  if (typeof section !== 'string') KNOWN_REQUESTS.keep(fields, { rules, section }, section.fields);
  return section;
}

function parseRequest(fields: Fields, rules: RequestRules): RequestSection | FaultReason {
  let method: string | undefined;
  let scheme: string | undefined;
  let authority: string | undefined;
  let path: string | undefined;

  let at = 0;
  for (; at < fields.length && isPseudo(fields[at] as string); at += 2) {
    const value = fields[at + 1] as string;
    switch (fields[at]) {
      case ':method':
        if (method !== undefined) return 'pseudo_repeated';
        method = value;
        break;
      case ':scheme':
        if (scheme !== undefined) return 'pseudo_repeated';
        scheme = value;
        break;
      case ':authority':
        if (authority !== undefined) return 'pseudo_repeated';
        authority = value;
        break;
      case ':path':
        if (path !== undefined) return 'pseudo_repeated';
        path = value;
        break;
      default:
        // Extended CONNECT (RFC 8441) could not be relayed.
        return 'pseudo_unknown';
    }
  }
  const control = readFields('request', fields, at);
  if (typeof control === 'string') return control;
  const { contentLength, host, mended } = control;
  const others = withoutHost(mended ?? fields, at, host !== undefined);

  if (method === undefined) return 'pseudo_missing';
  const methodWrong = methodFault(method);
  if (methodWrong !== undefined) return methodWrong;
  if (host !== undefined && !isAuthority(host)) return 'host_malformed';

  if (method === 'CONNECT') {
    if (contentLength !== undefined) return 'body_not_allowed';
    if (scheme !== undefined || path !== undefined || authority === undefined) return 'pseudo_missing';
    if (!isAuthorityWithPort(authority)) return 'authority_malformed';
    if (host !== undefined && host.toLowerCase() !== authority.toLowerCase()) return 'host_differs';
    return { kind: 'connect', method, authority, fields: others, contentLength };
  }

  if (scheme === undefined || path === undefined) return 'pseudo_missing';
  if (scheme !== 'http' && scheme !== 'https') {
    if (!SCHEME.test(scheme)) return 'scheme_malformed';
    scheme = scheme.toLowerCase();
  }
  const pathWrong = pathFault(path, method, rules.targetBytes);
  if (pathWrong !== undefined) return pathWrong;
  if (authority === undefined) {
    if (host === undefined) return 'authority_missing';
    authority = host;
  } else {
    if (!isAuthority(authority)) return 'authority_malformed';
    if (host !== undefined && !isSameAuthority(scheme, authority, host)) return 'host_differs';
  }
  return { kind: 'ordinary', method, scheme, authority, path, fields: others, contentLength };
}

function methodFault(method: string): FaultReason | undefined {
  if (method === 'POST' || method === 'GET') return undefined;
  if (method.length > MAX_METHOD_BYTES || !consistsOf(TOKEN, method)) return 'method_malformed';
  return !UPPER_CASE.test(method) && LOOKALIKE.test(method) ? 'method_lookalike' : undefined;
}

function pathFault(path: string, method: string, limitBytes: number): FaultReason | undefined {
  if (!consistsOf(TARGET, path)) return 'path_malformed';
  if (!path.startsWith('/') && !(path === '*' && method === 'OPTIONS')) return 'path_malformed';
  return path.length > limitBytes ? 'path_too_long' : undefined;
}

/** Ignores case and a default port. */
function isSameAuthority(scheme: string, one: string, other: string): boolean {
  if (one === other) return true;
  const port = scheme === 'http' || scheme === 'https' ? DEFAULT_PORT[scheme] : /:$/;
  return one.toLowerCase().replace(port, '') === other.toLowerCase().replace(port, '');
}

function withoutHost(fields: Fields, from: number, hasHost: boolean): Fields {
  const others = fields.slice(from);
  if (!hasHost) return others;
  for (let at = 0; at < others.length; at += 2) {
    if (others[at] === 'host') {
      others.splice(at, 2);
      break;
    }
  }
  return others;
}

export interface ResponseSection {
  /** After `interim` another follows (RFC 9110 §15.2). */
  readonly kind: 'interim' | 'final';
  /** 100 to 999 without 101 (RFC 9110 §15). */
  readonly status: number;
  /** Without `:status`. */
  readonly fields: Fields;
  readonly contentLength: number | undefined;
}

export type RequestKind = 'ordinary' | 'head' | 'connect';

/** Only answers to `ordinary` requests. */
const KNOWN_ANSWERS = new MadeOf<ResponseSection>();

export function readResponse(
  fields: Fields,
  asked: RequestKind,
  endStream: boolean,
): ResponseSection | FaultReason {
  const known = asked === 'ordinary' ? KNOWN_ANSWERS.get(fields) : undefined;
  if (known !== undefined) return known;
  const answer = parseResponse(fields, asked, endStream);
  if (typeof answer !== 'string' && answer.kind === 'final' && asked === 'ordinary') {
    KNOWN_ANSWERS.keep(fields, answer, answer.fields);
  }
  return answer;
}

function parseResponse(
  fields: Fields,
  asked: RequestKind,
  endStream: boolean,
): ResponseSection | FaultReason {
  let at = 0;
  for (; at < fields.length && isPseudo(fields[at] as string); at += 2) {
    if (fields[at] !== ':status') return 'pseudo_unknown';
    if (at > 0) return 'pseudo_repeated';
  }
  const control = readFields('answer', fields, at);
  if (typeof control === 'string') return control;
  if (at === 0) return 'pseudo_missing';
  const status = parseStatus(fields[1] as string);
  // Only HTTP/1.1 switches protocols (RFC 9113 §8.6).
  if (status === undefined || status === 101) return 'status_malformed';

  const kind = status < 200 ? 'interim' : 'final';
  if (kind === 'interim' && endStream) return 'interim_ends';
  const { contentLength, mended } = control;
  if (contentLength !== undefined) {
    const tunnels = asked === 'connect' && status >= 200 && status < 300;
    // Zero is common without a body, but not before the final answer.
    const bodiless = status === 204 || status === 205 || tunnels;
    if (kind === 'interim' || (bodiless && contentLength > 0)) return 'body_not_allowed';
  }
  return { kind, status, fields: (mended ?? fields).slice(at), contentLength };
}

/** For `BodyLength`; undefined if any number may follow. */
export function expectedBodyBytes(answer: ResponseSection, asked: RequestKind): number | undefined {
  const { status, contentLength } = answer;
  if (asked === 'head' || status === 204 || status === 304) return 0;
  if (asked === 'connect' && status >= 200 && status < 300) return undefined;
  return contentLength;
}

function parseStatus(value: string): number | undefined {
  if (value === '200') return 200;
  return /^[1-9][0-9]{2}$/.test(value) ? Number(value) : undefined;
}
