export interface OriginTarget {
  /** Starts with a slash, or is `*` (OPTIONS on the server as a whole). */
  readonly path: string;
  /** With its question mark; empty when there is none. */
  readonly query: string;
}

/** Some servers end a segment at these, too, before they resolve dot segments. */
const SEGMENT_ENDS = /\/|%2f|%5c/i;

/** Takes a target in origin-form or asterisk-form apart (RFC 9112 §3.2). */
export function splitTarget(target: string): OriginTarget {
  const mark = target.indexOf('?');
  return mark === -1
    ? { path: target, query: '' }
    : { path: target.slice(0, mark), query: target.slice(mark) };
}

/**
 * Whether a segment of `path` is `.` or `..` to anyone: percent-encoded, ended by an encoded slash or backslash, or with
 * parameters (`..;x`), which servlet containers take off first. The path decides which token is sent, so one that could
 * climb out of its prefix is to be refused, never resolved.
 */
export function hasDotSegment(path: string): boolean {
  if (!path.includes('.') && !(path.includes('%') && /%2e/i.test(path))) return false;
  return path.split(SEGMENT_ENDS).some((segment) => {
    const bare = segment.replace(/;.*$/, '').replace(/%2e/gi, '.');
    return bare === '.' || bare === '..';
  });
}
