/**
 * Which fields pass, which stay, which are made anew. Field sections are flat arrays [name, value, name, value, …]
 * as they came off the wire: order, case and repetition carry meaning and are kept.
 */

/** A field section: [name, value, name, value, …]. */
export type Fields = readonly string[];

/** Names the sidecars that a request has passed, so that one that comes back is a loop. See decision 0003. */
export const HOP_FIELD = 'token-sidecar-hop';

/** Says that an answer is the proxy's own and why; no upstream answer carries it. */
export const ERROR_FIELD = 'token-sidecar-error';

/** Meant for the next hop alone (RFC 9110 §7.6.1); remade where this hop needs them. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
]);

/** If `Connection` could name these away, a client could strip the token, the framing or the loop guard. */
const NEVER_NOMINATED: ReadonlySet<string> = new Set(['authorization', 'content-length', 'host', HOP_FIELD]);

/** A recipient may merge trailers into the head, so framing, routing and credentials have no place there (RFC 9110 §6.5.1). */
const NEVER_IN_TRAILERS: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'authorization',
  'content-encoding',
  'content-length',
  'content-range',
  'content-type',
  'expect',
  'host',
  'trailer',
  ERROR_FIELD,
  HOP_FIELD,
]);

const NONE: ReadonlySet<string> = new Set();

/** Every value of the field `name` (lower case), in order. */
export function fieldValues(fields: Fields, name: string): string[] {
  const values: string[] = [];
  for (let index = 0; index < fields.length; index += 2) {
    const candidate = fields[index] as string;
    if (candidate.length === name.length && candidate.toLowerCase() === name) {
      values.push(fields[index + 1] as string);
    }
  }
  return values;
}

/** The members of the list-valued field `name` (RFC 9110 §5.6.1), trimmed, without empty ones, case kept. */
export function listMembers(fields: Fields, name: string): string[] {
  return fieldValues(fields, name)
    .flatMap((value) => value.split(','))
    .map((member) => member.trim())
    .filter((member) => member !== '');
}

export interface UpstreamFieldRules {
  /** Value of Host. */
  readonly authority: string;
  /** Authorization value to inject; undefined injects none. */
  readonly authorization: string | undefined;
  /** Pass the client's own Authorization fields, in which case none is injected beside them. */
  readonly keepClientAuthorization: boolean;
  readonly instanceId: string;
  /** How the body leaves; `none` also where a content-length of 0 passes. */
  readonly framing: 'none' | 'length' | 'chunked';
  /** Protocols to offer in Upgrade; undefined where none is to be switched to. */
  readonly upgrade: string | undefined;
  /** Say `content-length: 0` where the client said nothing: for methods that anticipate a body (RFC 9110 §8.6). */
  readonly sayEmpty: boolean;
}

/** The field section of the request sent upstream. */
export function upstreamFields(fields: Fields, rules: UpstreamFieldRules): string[] {
  const nominated = nominatedNames(fields);
  const passed: string[] = [];
  const hops: string[] = [];
  let ownAuthorization = false;
  let host = false;
  let contentLength = false;
  let teTrailers = false;

  for (let index = 0; index < fields.length; index += 2) {
    const name = fields[index] as string;
    const value = fields[index + 1] as string;
    const key = name.toLowerCase();
    if (key === 'te') teTrailers ||= acceptsTrailers(value);
    if (HOP_BY_HOP.has(key) || nominated.has(key)) continue;
    if (key === 'host') {
      if (!host) passed.push(name, rules.authority);
      host = true;
      continue;
    }
    if (key === HOP_FIELD) {
      hops.push(value);
      continue;
    }
    if (key === 'authorization') {
      if (!rules.keepClientAuthorization) continue;
      ownAuthorization = true;
    }
    // Trailers exist only behind chunked framing (RFC 9112 §7.1.2); announcing them elsewhere is a lie.
    if (key === 'trailer' && rules.framing !== 'chunked') continue;
    contentLength ||= key === 'content-length';
    passed.push(name, value);
  }

  if (!host) passed.unshift('host', rules.authority);
  if (rules.framing === 'chunked') passed.push('transfer-encoding', 'chunked');
  else if (rules.sayEmpty && !contentLength) passed.push('content-length', '0');
  const options: string[] = [];
  if (teTrailers) {
    passed.push('te', 'trailers');
    options.push('te');
  }
  if (rules.upgrade !== undefined) {
    passed.push('upgrade', rules.upgrade);
    options.push('upgrade');
  }
  if (options.length > 0) passed.push('connection', options.join(', '));
  passed.push(HOP_FIELD, [...hops, rules.instanceId].filter((hop) => hop.trim() !== '').join(', '));
  if (rules.authorization !== undefined && !ownAuthorization) {
    passed.push('authorization', rules.authorization);
  }
  return passed;
}

/** Whether the request has already passed the sidecar `instanceId`. */
export function hasPassed(fields: Fields, instanceId: string): boolean {
  return listMembers(fields, HOP_FIELD).includes(instanceId);
}

export interface AnswerFieldRules {
  readonly status: number;
  /** The answer leaves chunked, so trailers may follow. */
  readonly chunked: boolean;
}

/** The field section of the answer sent to the app, framing left to the engine save for content-length. */
export function answerFields(fields: Fields, rules: AnswerFieldRules): string[] {
  const nominated = nominatedNames(fields);
  const passed: string[] = [];
  for (let index = 0; index < fields.length; index += 2) {
    const name = fields[index] as string;
    const value = fields[index + 1] as string;
    const key = name.toLowerCase();
    if (HOP_BY_HOP.has(key) || nominated.has(key) || key === ERROR_FIELD || key === HOP_FIELD) continue;
    if (key === 'trailer' && !rules.chunked) continue;
    // A server must not send it there (RFC 9110 §8.6), and a client that believed it would wait for a body.
    if (key === 'content-length' && hasNoLength(rules.status)) continue;
    passed.push(name, value);
  }
  return passed;
}

/** The field section of an informational answer (1xx but 101), or of the head of a 101 without its connection options. */
export function informationFields(fields: Fields): string[] {
  return answerFields(fields, { status: 100, chunked: false });
}

/** Trailers that may pass, either way. */
export function trailerFields(fields: Fields): string[] {
  const passed: string[] = [];
  for (let index = 0; index < fields.length; index += 2) {
    const name = fields[index] as string;
    const value = fields[index + 1] as string;
    if (!NEVER_IN_TRAILERS.has(name.toLowerCase())) passed.push(name, value);
  }
  return passed;
}

function nominatedNames(fields: Fields): ReadonlySet<string> {
  const members = listMembers(fields, 'connection');
  if (members.length === 0) return NONE;
  const names = new Set<string>();
  for (const member of members) {
    const name = member.toLowerCase();
    if (!NEVER_NOMINATED.has(name)) names.add(name);
  }
  return names;
}

function acceptsTrailers(te: string): boolean {
  return te.split(',').some((member) => member.trim().toLowerCase() === 'trailers');
}

function hasNoLength(status: number): boolean {
  return status < 200 || status === 204 || status === 205;
}
