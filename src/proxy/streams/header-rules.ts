/** Which fields pass, which stay, which are made anew. */

import { lowerCaseName } from '../http/field-names.ts';
import { type Fields, hasField, listMembers, membersOf } from '../http/fields.ts';
import type { FieldSection } from './message.ts';

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

/** Options that say something of the connection and name no field that would pass. */
const PLAIN_OPTIONS: ReadonlySet<string> = new Set(['close', ...HOP_BY_HOP]);

/** If `Connection` could name these away, a client could strip the token, the framing or the loop guard. */
const NEVER_NOMINATED: ReadonlySet<string> = new Set(['authorization', 'content-length', 'host', HOP_FIELD]);

/**
 * Nearly every field that no rule names is told by its length, before a string is made to compare its name in lower
 * case: 1 where a name of that length has to be looked at.
 */
const REQUEST_LENGTHS = lengthsOf([...HOP_BY_HOP, ...NEVER_NOMINATED, 'trailer']);
const ANSWER_LENGTHS = lengthsOf([...HOP_BY_HOP, 'content-length', 'trailer', ERROR_FIELD, HOP_FIELD]);

export interface UpstreamFieldRules {
  /** Value of Host. */
  readonly authority: string;
  /** Authorization value to inject; undefined injects none. */
  readonly authorization: string | undefined;
  /** Pass the client's own Authorization fields, in which case none is injected beside them. */
  readonly keepClientAuthorization: boolean;
  readonly instanceId: string;
  /** The body leaves chunked. */
  readonly chunked: boolean;
  /** Protocols to offer in Upgrade; undefined where none is to be switched to. */
  readonly upgrade: string | undefined;
  /** Say `content-length: 0` where the client said nothing: for methods that anticipate a body (RFC 9110 §8.6). */
  readonly sayEmpty: boolean;
}

/** The field section of the request sent upstream. */
export function upstreamFields(section: FieldSection, rules: UpstreamFieldRules): string[] {
  const { fields } = section;
  const nominated = nominatedNames(section);
  const passed: string[] = [];
  const options: string[] = [];
  let hops = '';
  let ownAuthorization = false;
  let host = false;
  let contentLength = false;

  for (let index = 0; index < fields.length; index += 2) {
    const name = fields[index] as string;
    const value = fields[index + 1] as string;
    if (nominated === undefined && REQUEST_LENGTHS[name.length] !== 1) {
      passed.push(name, value);
      continue;
    }
    const key = lowerCaseName(name);
    switch (key) {
      case 'host':
        if (!host) passed.push(name, rules.authority);
        host = true;
        break;
      case HOP_FIELD:
        hops = joined(hops, value);
        break;
      case 'te':
        if (!options.includes('te') && acceptsTrailers(value)) options.push('te');
        break;
      case 'authorization':
        if (rules.keepClientAuthorization) passed.push(name, value);
        ownAuthorization = rules.keepClientAuthorization;
        break;
      case 'content-length':
        contentLength = true;
        passed.push(name, value);
        break;
      case 'trailer':
        // Trailers exist only behind chunked framing (RFC 9112 §7.1.2); announcing them elsewhere is a lie.
        if (rules.chunked && nominated?.has(key) !== true) passed.push(name, value);
        break;
      default:
        if (!HOP_BY_HOP.has(key) && nominated?.has(key) !== true) passed.push(name, value);
    }
  }

  if (!host) passed.unshift('host', rules.authority);
  if (rules.chunked) passed.push('transfer-encoding', 'chunked');
  else if (rules.sayEmpty && !contentLength) passed.push('content-length', '0');
  if (options.length > 0) passed.push('te', 'trailers');
  if (rules.upgrade !== undefined) {
    passed.push('upgrade', rules.upgrade);
    options.push('upgrade');
  }
  if (options.length > 0) passed.push('connection', options.join(', '));
  passed.push(HOP_FIELD, joined(hops, rules.instanceId));
  if (rules.authorization !== undefined && !ownAuthorization) {
    passed.push('authorization', rules.authorization);
  }
  return passed;
}

/** Whether the request has already passed the sidecar `instanceId`. */
export function hasPassed(fields: Fields, instanceId: string): boolean {
  return hasField(fields, HOP_FIELD) && listMembers(fields, HOP_FIELD).includes(instanceId);
}

/** The protocols offered in Upgrade (RFC 9110 §7.8); undefined when Connection does not name it or it names none. */
export function offeredProtocols({ fields, connectionOptions }: FieldSection): string | undefined {
  if (!connectionOptions.includes('upgrade')) return undefined;
  const protocols = listMembers(fields, 'upgrade');
  return protocols.length === 0 ? undefined : protocols.join(', ');
}

export interface AnswerFieldRules {
  readonly status: number;
  /**
   * How its body leaves: in chunks, or in frames of a version that delimits it by itself; trailers may follow these.
   * `plain` is anything else.
   */
  readonly body: 'chunked' | 'framed' | 'plain';
}

/** The field section of the answer sent to the app, with its framing but without connection options. */
export function answerFields(section: FieldSection, rules: AnswerFieldRules): string[] {
  const { fields } = section;
  const nominated = nominatedNames(section);
  const passed: string[] = [];
  for (let index = 0; index < fields.length; index += 2) {
    const name = fields[index] as string;
    if (nominated !== undefined || ANSWER_LENGTHS[name.length] === 1) {
      const key = lowerCaseName(name);
      if (HOP_BY_HOP.has(key) || nominated?.has(key) || key === ERROR_FIELD || key === HOP_FIELD) continue;
      if (key === 'trailer' && rules.body === 'plain') continue;
      // A server must not send it there (RFC 9110 §8.6), and a client that believed it would wait for a body.
      if (key === 'content-length' && hasNoLength(rules.status)) continue;
    }
    passed.push(name, fields[index + 1] as string);
  }
  if (rules.status === 205) passed.push('content-length', '0');
  if (rules.body === 'chunked') passed.push('transfer-encoding', 'chunked');
  return passed;
}

/** The field section of an informational answer (1xx but 101), or of a 101 without its connection options. */
export function informationFields(section: FieldSection): string[] {
  return answerFields(section, { status: 100, body: 'plain' });
}

/** Names of fields, in lower case, that Connection takes away; undefined where there are none but the usual. */
function nominatedNames({ connectionOptions }: FieldSection): ReadonlySet<string> | undefined {
  let names: Set<string> | undefined;
  for (const option of connectionOptions) {
    if (PLAIN_OPTIONS.has(option) || NEVER_NOMINATED.has(option)) continue;
    names ??= new Set();
    names.add(option);
  }
  return names;
}

function lengthsOf(names: readonly string[]): Uint8Array {
  const lengths = new Uint8Array(64);
  for (const name of names) lengths[name.length] = 1;
  return lengths;
}

function joined(list: string, value: string): string {
  if (list === '' || value.trim() === '') return list + value.trim();
  return `${list}, ${value}`;
}

function acceptsTrailers(te: string): boolean {
  return membersOf(te).some((member) => member.toLowerCase() === 'trailers');
}

function hasNoLength(status: number): boolean {
  return status < 200 || status === 204 || status === 205;
}
