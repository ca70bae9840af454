/** Field sections of every version of HTTP: names, values, lists, cookies and trailers. */

/**
 * A field section: [name, value, name, value, …] as it came off the wire. Order, case and repetition carry meaning and
 * are kept; every octet above 0x7F is one char of the same code (latin1).
 */
export type Fields = readonly string[];

const NONE: readonly string[] = [];

/** Every value of the field `name` (lower case), in order. */
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

/** Whether the field `name` (lower case) is there. */
export function hasField(fields: Fields, name: string): boolean {
  for (let index = 0; index < fields.length; index += 2) {
    if (isNamed(fields[index] as string, name)) return true;
  }
  return false;
}

/** Whether a request with these fields waits for 100 before its body (RFC 9110 §10.1.1). */
export function expectsContinue(fields: Fields): boolean {
  return fieldValues(fields, 'expect').some((value) => value.toLowerCase() === '100-continue');
}

/** How many octets names and values have. */
export function octetsOf(fields: Fields): number {
  let octets = 0;
  for (const part of fields) octets += part.length;
  return octets;
}

/** The members of the list-valued field `name` (RFC 9110 §5.6.1), trimmed, without empty ones, case kept. */
export function listMembers(fields: Fields, name: string): string[] {
  return fieldValues(fields, name).flatMap(membersOf);
}

/** The members of one list, in the same way. */
export function membersOf(list: string): string[] {
  return list
    .split(',')
    .map((member) => member.trim())
    .filter((member) => member !== '');
}

/** What rules of the data path name. They nearly always come in one of two spellings, which need no new string each time. */
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

/**
 * Whether `candidate`, in any case, is `name`, which begins with a lower-case letter. Length and first letter rule out
 * nearly all others.
 */
export function isNamed(candidate: string, name: string): boolean {
  return (
    candidate.length === name.length &&
    (candidate.charCodeAt(0) | 0x20) === name.charCodeAt(0) &&
    lowerCaseName(candidate) === name
  );
}

/** `name` in lower case: field names are case-insensitive (RFC 9110 §5.1). */
export function lowerCaseName(name: string): string {
  return USUAL_SPELLINGS.get(name) ?? name.toLowerCase();
}

/** The fields with names in lower case; what came by HTTP/2 has them already, and is returned itself. */
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

/**
 * Content-Length: one decimal number without sign, below 2^53; undefined for anything else, even the list of equal
 * values that RFC 9110 §8.6 lets a recipient accept.
 */
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

/** Trailers come when these have long been decided. */
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
  'set-cookie',
  'www-authenticate',
  // How a response is to be handled, and request modifiers
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

/** Proofs of callers come with underscores too, which some servers read as hyphens. */
const FORBIDDEN_TRAILER_PREFIX =
  /^(?:access-control-|content-|if-|proxy[-_]|sec-|token[-_]sidecar[-_]|x-forwarded-)/;

/** Fields reserved for the proxy. */
const OWN_TRAILER_PREFIX = /^token-sidecar-/i;

/**
 * The fields that a trailer section may hold, in order. One that could have swayed routing, authentication or framing
 * from the head must not be merged into it later by anybody (RFC 9110 §6.5.1): such fields are dropped, whatever version
 * of HTTP brought them.
 */
export function permittedTrailers(fields: Fields): string[] {
  const permitted: string[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as string;
    if (!isForbiddenTrailer(name)) permitted.push(name, fields[at + 1] as string);
  }
  return permitted;
}

/**
 * The trailers of an answer to a gRPC call, without fields reserved for the proxy. They are metadata, which services
 * name as they like and clients keep apart from the head.
 */
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
 * Cookies in HTTP/2 may come as one field for each, so that they compress better (RFC 9113 §8.2.3). Joins these crumbs
 * into one field, in the place of the first one, since HTTP/1.1 takes no more than one. `fields` stays
 * unchanged; without crumbs it is returned itself.
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
