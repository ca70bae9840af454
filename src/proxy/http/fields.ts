/**
 * [name, value, name, value, …] as it came: order, case and repetition carry meaning. Octets above 0x7F are chars of
 * the same code (latin1).
 */
export type Fields = readonly string[];

const NONE: readonly string[] = [];

/** @param name lower-case. */
export function fieldValues(fields: Fields, name: string): readonly string[] {
  // A one-element array takes a ninth of a growing one, and nearly every field occurs once at most.
  let values: string[] | undefined;
  for (let index = 0; index < fields.length; index += 2) {
    if (!isNamed(fields[index] as string, name)) continue;
    if (values === undefined) values = [fields[index + 1] as string];
    else values.push(fields[index + 1] as string);
  }
  return values ?? NONE;
}

/** @param name lower-case. */
export function hasField(fields: Fields, name: string): boolean {
  for (let index = 0; index < fields.length; index += 2) {
    if (isNamed(fields[index] as string, name)) return true;
  }
  return false;
}

/** RFC 9110 §10.1.1. */
export function expectsContinue(fields: Fields): boolean {
  return fieldValues(fields, 'expect').some((value) => value.toLowerCase() === '100-continue');
}

/** Of names and values. */
export function octetsOf(fields: Fields): number {
  let octets = 0;
  for (const part of fields) octets += part.length;
  return octets;
}

/** Of the list-valued field `name` (RFC 9110 §5.6.1): trimmed, without empty ones, case kept. */
export function listMembers(fields: Fields, name: string): string[] {
  return fieldValues(fields, name).flatMap(membersOf);
}

export function membersOf(list: string): string[] {
  return list
    .split(',')
    .map((member) => member.trim())
    .filter((member) => member !== '');
}

/** Their usual two spellings need no new string. */
const RULED = [
  'authorization',
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

const USUAL_SPELLINGS: ReadonlyMap<string, string> = new Map(
  RULED.flatMap((name) => [
    [name, name],
    [name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase()), name],
  ]),
);

/** @param name begins with a lower-case letter. */
export function isNamed(candidate: string, name: string): boolean {
  return (
    candidate.length === name.length &&
    (candidate.charCodeAt(0) | 0x20) === name.charCodeAt(0) &&
    lowerCaseName(candidate) === name
  );
}

/** Field names are case-insensitive (RFC 9110 §5.1). */
export function lowerCaseName(name: string): string {
  return USUAL_SPELLINGS.get(name) ?? name.toLowerCase();
}

/** Returns `fields` itself if they are lower-case already, as from HTTP/2. */
export function lowerCaseNames(fields: Fields): Fields {
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as string;
    if (lowerCaseName(name) !== name) return fields.map(lowerCaseAt);
  }
  return fields;
}

function lowerCaseAt(part: string, at: number): string {
  return at % 2 === 0 ? lowerCaseName(part) : part;
}

/** Undefined unless one decimal number below 2^53. RFC 9110 §8.6 would allow a list of equal values. */
export function parseContentLength(value: string): number | undefined {
  if (value === '') return undefined;
  let length = 0;
  for (let at = 0; at < value.length; at++) {
    const digit = value.charCodeAt(at) - 0x30;
    if (!(digit >= 0 && digit <= 9)) return undefined;
    length = length * 10 + digit;
    if (length > Number.MAX_SAFE_INTEGER) return undefined;
  }
  return length;
}

const FORBIDDEN_TRAILERS = new Set([
  // Framing and routing
  'expect',
  'forwarded',
  'host',
  'keep-alive',
  'max-forwards',
  'te',
  'trailer',
  'upgrade',
  'via',
  // Authentication and state
  'authorization',
  'cookie',
  'dpop',
  'set-cookie',
  'www-authenticate',
  // Response handling and request modifiers
  'age',
  'allow',
  'cache-control',
  'date',
  'expires',
  'location',
  'pragma',
  'range',
  'retry-after',
  'vary',
  'warning',
]);

/** With underscores too, which some servers read as hyphens. */
const FORBIDDEN_TRAILER_PREFIX =
  /^(?:access-control-|content-|if-|proxy[-_]|sec-|token[-_]sidecar[-_]|x-forwarded-)/;

/** Reserved for the proxy. */
const OWN_TRAILER_PREFIX = /^token-sidecar-/i;

/**
 * Trailers that could have changed routing, authentication or framing are dropped, since a recipient might merge them
 * into the head (RFC 9110 §6.5.1).
 */
export function permittedTrailers(fields: Fields): string[] {
  const permitted: string[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as string;
    if (!isForbiddenTrailer(name)) permitted.push(name, fields[at + 1] as string);
  }
  return permitted;
}

/** For gRPC: trailers are metadata of any name, kept apart from the head. Only the proxy's own are dropped. */
export function permittedMetadata(fields: Fields): string[] {
  const permitted: string[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as string;
    if (!OWN_TRAILER_PREFIX.test(name)) permitted.push(name, fields[at + 1] as string);
  }
  return permitted;
}

function isForbiddenTrailer(name: string): boolean {
  const lower = name.toLowerCase();
  return FORBIDDEN_TRAILERS.has(lower) || FORBIDDEN_TRAILER_PREFIX.test(lower);
}

/**
 * Joins the cookie crumbs of HTTP/2 (RFC 9113 §8.2.3) into one field in the first's place: HTTP/1.1 takes no more.
 * Without crumbs it returns `fields` itself.
 */
export function joinCookies(fields: Fields): Fields {
  const first = indexOfCookie(fields, 0);
  if (first === -1 || indexOfCookie(fields, first + 2) === -1) return fields;
  const joined: string[] = [];
  const crumbs: string[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    const value = fields[at + 1] as string;
    if (fields[at] === 'cookie') crumbs.push(value);
    if (at === first || fields[at] !== 'cookie') joined.push(fields[at] as string, value);
  }
  joined[first + 1] = crumbs.join('; ');
  return joined;
}

function indexOfCookie(fields: Fields, from: number): number {
  for (let at = from; at < fields.length; at += 2) if (fields[at] === 'cookie') return at;
  return -1;
}
