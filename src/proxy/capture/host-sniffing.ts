/** The host of a redirected connection only decides who serves it: the server judges the same octets again. */

import { HANDSHAKE_RECORD, MAX_HELLO_BYTES, readClientHello } from '../tls/client-hello.ts';

const MAX_FIRST_BYTES = MAX_HELLO_BYTES;

type HostSniff =
  | { readonly kind: 'named'; readonly scheme: 'http' | 'https'; readonly authority: string }
  /** More octets are needed. */
  | { readonly kind: 'partial' }
  /** Nothing names the host. */
  | { readonly kind: 'nameless' };

const PARTIAL: HostSniff = { kind: 'partial' };
const NAMELESS: HostSniff = { kind: 'nameless' };

/** RFC 9112 §3. HTTP/2 begins with such a line of version 2. */
const REQUEST_LINE = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32} (\S+) HTTP\/1\.[01]\r\n/;
const BEGUN_REQUEST_LINE = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{0,32}(?:$| [^\r\n]*\r?$)/;
const HOST = '\r\nhost:';
const LINE_END = '\r\n';

/** @param octets everything so far, at least one. */
export function sniffHost(octets: Buffer): HostSniff {
  if (octets[0] === HANDSHAKE_RECORD) {
    const hello = readClientHello(octets);
    if (hello.kind === 'partial') return PARTIAL;
    if (hello.kind === 'malformed' || hello.serverName === undefined) return NAMELESS;
    return { kind: 'named', scheme: 'https', authority: hello.serverName };
  }
  const said = octets.toString('latin1', 0, MAX_FIRST_BYTES);
  const target = REQUEST_LINE.exec(said)?.[1];
  if (target === undefined) {
    return octets.length < MAX_FIRST_BYTES && BEGUN_REQUEST_LINE.test(said) ? PARTIAL : NAMELESS;
  }
  // Other forms are for the app's own proxy (RFC 9112 §3.2), not for the named host.
  if (!target.startsWith('/') && target !== '*') return NAMELESS;
  const headEnd = said.indexOf('\r\n\r\n');
  const authority = hostIn(headEnd === -1 ? said : said.slice(0, headEnd + LINE_END.length));
  if (authority !== undefined) return { kind: 'named', scheme: 'http', authority };
  return headEnd === -1 && octets.length < MAX_FIRST_BYTES ? PARTIAL : NAMELESS;
}

/** The first complete Host line. A regular expression takes quadratic time on a long run of blanks. */
function hostIn(fields: string): string | undefined {
  const at = fields.toLowerCase().indexOf(HOST);
  if (at === -1) return undefined;
  let start = at + HOST.length;
  let end = fields.indexOf(LINE_END, start);
  if (end === -1) return undefined;
  while (start < end && isBlank(fields[start])) start++;
  while (end > start && isBlank(fields[end - 1])) end--;
  return fields.slice(start, end);
}

/** RFC 9110 §5.6.3. */
function isBlank(character: string | undefined): boolean {
  return character === ' ' || character === '\t';
}
