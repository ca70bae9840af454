/** RFC 7541 Appendix A. Indices begin at 1. */

const ENTRIES = `
:authority
:method GET
:method POST
:path /
:path /index.html
:scheme http
:scheme https
:status 200
:status 204
:status 206
:status 304
:status 400
:status 404
:status 500
accept-charset
accept-encoding gzip, deflate
accept-language
accept-ranges
accept
access-control-allow-origin
age
allow
authorization
cache-control
content-disposition
content-encoding
content-language
content-length
content-location
content-range
content-type
cookie
date
etag
expect
expires
from
host
if-match
if-modified-since
if-none-match
if-range
if-unmodified-since
last-modified
link
location
max-forwards
proxy-authenticate
proxy-authorization
range
referer
refresh
retry-after
server
set-cookie
strict-transport-security
transfer-encoding
user-agent
vary
via
www-authenticate`;

export const STATIC_NAMES: readonly string[] = ENTRIES.split('\n').map(
  (entry) => entry.split(' ')[0] as string,
);
export const STATIC_VALUES: readonly string[] = ENTRIES.split('\n').map((entry) =>
  entry.includes(' ') ? entry.slice(entry.indexOf(' ') + 1) : '',
);

export const STATIC_ENTRIES = 61;

/** Entries of one name, which follow one another. */
interface StaticName {
  readonly index: number;
  readonly values: readonly string[];
}

export const STATIC_BY_NAME: ReadonlyMap<string, StaticName> = new Map(
  [...new Set(STATIC_NAMES.slice(1))].map((name) => {
    const index = STATIC_NAMES.indexOf(name);
    return [name, { index, values: STATIC_VALUES.slice(index, STATIC_NAMES.lastIndexOf(name) + 1) }];
  }),
);
