/** Which fields pass, are dropped, or are remade. */

import { HOP_FIELD } from '../../platform/net/listen.ts';
import { type Fields, hasField, listMembers, lowerCaseName, membersOf } from '../http/fields.ts';
import { MadeOf } from '../http/lasting-fields.ts';
import type { FieldSection, OutgoingRequest } from './contract.ts';
import { placeAuthorization } from './token-placement.ts';

/** Says why an answer is the proxy's own; no other has it. */
export const ERROR_FIELD = 'token-sidecar-error';

/** Meant for one hop (RFC 9110 §7.6.1); remade if this hop needs them. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
]);

/** Options that name no field that would pass. */
const PLAIN_OPTIONS: ReadonlySet<string> = new Set(['close', ...HOP_BY_HOP]);

/** A client could strip the token, the framing or the loop guard by `Connection`. */
const NEVER_NOMINATED: ReadonlySet<string> = new Set(['authorization', 'content-length', 'host', HOP_FIELD]);

/** Names of these lengths and first letters must be compared, the others not. */
const REQUEST_SHAPES = shapesOf([...HOP_BY_HOP, ...NEVER_NOMINATED, 'dpop', 'trailer']);
const ANSWER_SHAPES = shapesOf([...HOP_BY_HOP, 'content-length', 'trailer', ERROR_FIELD, HOP_FIELD]);

type UpstreamFieldRules = Pick<
  OutgoingRequest,
  'authority' | 'authorization' | 'proof' | 'keepClientAuthorization' | 'instanceId' | 'upgrade'
>;

/**
 * `chunked` if trailers may follow; `empty` if the method anticipates a body, so that `content-length: 0` may
 * be added (RFC 9110 §8.6); else `plain`.
 */
export type RequestBodyForm = 'chunked' | 'empty' | 'plain';

const REQUESTS = new MadeOf<{
  readonly rules: UpstreamFieldRules;
  readonly body: RequestBodyForm;
  readonly passed: Fields;
}>();

export function upstreamFields(
  section: FieldSection,
  rules: UpstreamFieldRules,
  body: RequestBodyForm,
): Fields {
  // A proof is for one request.
  if (rules.proof !== undefined) return makeUpstreamFields(section, rules, body);
  const known = REQUESTS.get(section.fields);
  if (known?.body === body && isSameRule(known.rules, rules)) return known.passed;
  const passed = makeUpstreamFields(section, rules, body);
  REQUESTS.keep(section.fields, { rules, body, passed }, passed);
  return passed;
}

/** Of rules without a proof. The token matters above all. */
export function isSameRule(one: UpstreamFieldRules, other: UpstreamFieldRules): boolean {
  return (
    one.authorization === other.authorization &&
    one.authority === other.authority &&
    one.keepClientAuthorization === other.keepClientAuthorization &&
    one.instanceId === other.instanceId &&
    one.upgrade === other.upgrade
  );
}

function makeUpstreamFields(
  section: FieldSection,
  rules: UpstreamFieldRules,
  body: RequestBodyForm,
): string[] {
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
    if (nominated === undefined && REQUEST_SHAPES[shapeOf(name)] !== 1) {
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
      case 'dpop':
        // A server refuses a request with two (RFC 9449 §4.3).
        if (rules.proof === undefined && nominated?.has(key) !== true) passed.push(name, value);
        break;
      case 'content-length':
        contentLength = true;
        passed.push(name, value);
        break;
      case 'trailer':
        // Trailers exist only behind chunks (RFC 9112 §7.1.2).
        if (body === 'chunked' && nominated?.has(key) !== true) passed.push(name, value);
        break;
      default:
        if (!HOP_BY_HOP.has(key) && nominated?.has(key) !== true) passed.push(name, value);
    }
  }

  if (!host) passed.unshift('host', rules.authority);
  if (body === 'chunked') passed.push('transfer-encoding', 'chunked');
  else if (body === 'empty' && !contentLength) passed.push('content-length', '0');
  if (options.length > 0) passed.push('te', 'trailers');
  if (rules.upgrade !== undefined) {
    passed.push('upgrade', rules.upgrade);
    options.push('upgrade');
  }
  if (options.length > 0) passed.push('connection', options.join(', '));
  passed.push(HOP_FIELD, joined(hops, rules.instanceId));
  placeAuthorization(passed, rules.authorization, ownAuthorization);
  if (rules.proof !== undefined) passed.push('dpop', rules.proof);
  return passed;
}

/** Serves the loop guard. */
export function hasPassed(fields: Fields, instanceId: string): boolean {
  return hasField(fields, HOP_FIELD) && listMembers(fields, HOP_FIELD).includes(instanceId);
}

/**
 * In Upgrade (RFC 9110 §7.8), if Connection names it. Requests of `h2c` (RFC 9113 §3.1) would bypass routes,
 * tokens and policy.
 */
export function offeredProtocols({ fields, connectionOptions }: FieldSection): string | undefined {
  if (!connectionOptions.includes('upgrade')) return undefined;
  const protocols = listMembers(fields, 'upgrade').filter((protocol) => protocol.toLowerCase() !== 'h2c');
  return protocols.length === 0 ? undefined : protocols.join(', ');
}

export function offersWebSocket(protocols: string | undefined): boolean {
  return protocols !== undefined && membersOf(protocols).some((one) => one.toLowerCase() === 'websocket');
}

interface ResponseFieldRules {
  readonly status: number;
  /** Trailers may follow all but `plain`. */
  readonly body: 'chunked' | 'framed' | 'plain';
}

const ANSWERS = new MadeOf<{ readonly rules: ResponseFieldRules; readonly passed: Fields }>();

/** Leaves out connection options. */
export function responseFields(section: FieldSection, rules: ResponseFieldRules): Fields {
  const known = ANSWERS.get(section.fields);
  if (known?.rules.status === rules.status && known.rules.body === rules.body) return known.passed;
  const passed = makeResponseFields(section, rules);
  ANSWERS.keep(section.fields, { rules, passed }, passed);
  return passed;
}

function makeResponseFields(section: FieldSection, rules: ResponseFieldRules): string[] {
  const { fields } = section;
  const nominated = nominatedNames(section);
  const passed: string[] = [];
  for (let index = 0; index < fields.length; index += 2) {
    const name = fields[index] as string;
    if (nominated !== undefined || ANSWER_SHAPES[shapeOf(name)] === 1) {
      const key = lowerCaseName(name);
      if (HOP_BY_HOP.has(key) || nominated?.has(key) || key === ERROR_FIELD || key === HOP_FIELD) continue;
      if (key === 'trailer' && rules.body === 'plain') continue;
      // Forbidden there (RFC 9110 §8.6): a client could wait for a body.
      if (key === 'content-length' && hasNoLength(rules.status)) continue;
    }
    passed.push(name, fields[index + 1] as string);
  }
  if (rules.status === 205) passed.push('content-length', '0');
  if (rules.body === 'chunked') passed.push('transfer-encoding', 'chunked');
  return passed;
}

/** Fields of a 1xx, or of a 101 without its connection options. */
export function informationFields(section: FieldSection): Fields {
  return responseFields(section, { status: 100, body: 'plain' });
}

/** In lower case; undefined if all are usual ones. */
function nominatedNames({ connectionOptions }: FieldSection): ReadonlySet<string> | undefined {
  let names: Set<string> | undefined;
  for (const option of connectionOptions) {
    if (PLAIN_OPTIONS.has(option) || NEVER_NOMINATED.has(option)) continue;
    names ??= new Set();
    names.add(option);
  }
  return names;
}

function shapesOf(names: readonly string[]): Uint8Array {
  const shapes = new Uint8Array(Math.max(...names.map(shapeOf)) + 1);
  for (const name of names) shapes[shapeOf(name)] = 1;
  return shapes;
}

/** Equal for both cases of the first letter. */
function shapeOf(name: string): number {
  return name.length * 32 + (name.charCodeAt(0) & 0x1f);
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
