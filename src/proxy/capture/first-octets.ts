/**
 * By what name an app calls the host of a connection that was redirected: SNI (RFC 6066 §3), or the Host of its first request.
 * It only decides who serves the connection: the same octets are then read by those who judge them.
 */

import { HANDSHAKE_RECORD, MOST_HELLO_BYTES, readClientHello } from '../tls/client-hello.ts';

/** A host that is not named within so many octets is not known by its name. */
export const MOST_FIRST_BYTES = MOST_HELLO_BYTES;

export type Naming =
  | { readonly kind: 'named'; readonly scheme: 'http' | 'https'; readonly authority: string }
  /** It goes on: more octets are wanted. */
  | { readonly kind: 'partial' }
  /** Neither TLS with a name nor a request of HTTP/1.1 to a host: nobody's, as far as anybody can tell. */
  | { readonly kind: 'nameless' };

const PARTIAL: Naming = { kind: 'partial' };
const NAMELESS: Naming = { kind: 'nameless' };

/** RFC 9112 §3: a method, a target, a version. HTTP/2 begins with one of version 2. */
const REQUEST_LINE = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32} (\S+) HTTP\/1\.[01]\r\n/;
const BEGUN_REQUEST_LINE = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{0,32}(?:$| [^\r\n]*\r?$)/;
const HOST = '\r\nhost:';
const LINE_END = '\r\n';

/** @param octets all that the app has said, at least one. */
export function nameIn(octets: Buffer): Naming {
  if (octets[0] === HANDSHAKE_RECORD) {
    const hello = readClientHello(octets);
    if (hello.kind === 'partial') return PARTIAL;
    if (hello.kind === 'malformed' || hello.serverName === undefined) return NAMELESS;
    return { kind: 'named', scheme: 'https', authority: hello.serverName };
  }
  const said = octets.toString('latin1', 0, MOST_FIRST_BYTES);
  const target = REQUEST_LINE.exec(said)?.[1];
  if (target === undefined) {
    return octets.length < MOST_FIRST_BYTES && BEGUN_REQUEST_LINE.test(said) ? PARTIAL : NAMELESS;
  }
  // Every other form, of CONNECT too, is for a proxy of the app's own (RFC 9112 §3.2): the connection leads there, to no host that is named.
  if (!target.startsWith('/') && target !== '*') return NAMELESS;
  const headEnd = said.indexOf('\r\n\r\n');
  // With the line end of the last field.
  const authority = hostIn(headEnd === -1 ? said : said.slice(0, headEnd + LINE_END.length));
  if (authority !== undefined) return { kind: 'named', scheme: 'http', authority };
  return headEnd === -1 && octets.length < MOST_FIRST_BYTES ? PARTIAL : NAMELESS;
}

/** The value of the first Host whose line has ended. Without a regular expression: a long run of blanks costs those their square. */
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
