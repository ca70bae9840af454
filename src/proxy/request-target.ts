import { SidecarError } from '../errors.ts';

export interface OriginTarget {
  /** Starts with a slash, or is `*` (OPTIONS on the server as a whole). */
  readonly path: string;
  /** With its question mark; empty when there is none. */
  readonly query: string;
}

/** VCHAR without `#` and backslash: everything else is either illegal in a target or read in more than one way. */
const PLAIN = /^[\x21\x22\x24-\x5b\x5d-\x7e]+$/;

const ABSOLUTE = /^[A-Za-z][A-Za-z0-9+.-]*:/;

/** Servers take these, too, for a segment's end before they resolve dot segments. */
const SEGMENT_ENDS = /\/|%2f|%5c/i;

/**
 * Takes a request target apart (RFC 9112 §3.2). The path decides which token is sent, so it must mean one thing to
 * this proxy and to every upstream: what could climb out of its prefix is refused, never resolved.
 * @throws {SidecarError} `bad_request`; `uri_too_long`; `destination_not_allowed` for forward-proxy forms.
 */
export function parseRequestTarget(method: string, target: string, maxBytes: number): OriginTarget {
  if (target.length > maxBytes) {
    throw new SidecarError(
      'uri_too_long',
      `the request target has ${target.length} bytes, the limit is ${maxBytes}`,
    );
  }
  if (!PLAIN.test(target)) {
    throw new SidecarError('bad_request', 'the request target holds a character that is not allowed in one');
  }
  if (method === 'CONNECT' || (ABSOLUTE.test(target) && !target.startsWith('/'))) {
    throw new SidecarError('destination_not_allowed', 'this listener is not a forward proxy');
  }
  if (target === '*' && method === 'OPTIONS') return { path: '*', query: '' };
  if (!target.startsWith('/')) {
    throw new SidecarError('bad_request', 'the request target must be a path that starts with a slash');
  }
  const mark = target.indexOf('?');
  const path = mark === -1 ? target : target.slice(0, mark);
  if (hasDotSegment(path)) {
    throw new SidecarError('bad_request', 'the path must not hold dot segments, encoded or not');
  }
  return { path, query: mark === -1 ? '' : target.slice(mark) };
}

/**
 * Whether a segment is `.` or `..` to anyone: percent-encoded, ended by an encoded slash or backslash, or with
 * parameters (`..;x`), which servlet containers take off first.
 */
function hasDotSegment(path: string): boolean {
  if (!path.includes('.') && !/%2e/i.test(path)) return false;
  return path.split(SEGMENT_ENDS).some((segment) => {
    const bare = segment.replace(/;.*$/, '').replace(/%2e/gi, '.');
    return bare === '.' || bare === '..';
  });
}
