/** HTTP/2 fields: `:status` first, lower-case names, no fields of the connection (RFC 9113 §8.2). */

import { type Fields, joinCookies, lowerCaseNames } from '../../http/fields.ts';
import { MadeOf } from '../../http/lasting-fields.ts';
import type { RequestSection } from '../../http2/messages.ts';
import type { IncomingRequest, LocalReply, ResponseHead } from '../../streams/contract.ts';
import { informationFields, responseFields } from '../../streams/header-rules.ts';

const SECTIONS = new MadeOf<{ readonly status: number; readonly section: Fields }>();

/** Of an upstream's final answer. */
export function responseSection(head: ResponseHead): Fields {
  const { status, fields } = head;
  const known = SECTIONS.get(fields);
  // HTTP/2 has no Connection field that could take others away.
  if (known?.status === status) return known.section;
  const made = section(status, responseFields(head, { status, body: 'framed' }));
  SECTIONS.keep(fields, { status, section: made }, made);
  return made;
}

export function informationSection(head: ResponseHead): string[] {
  return section(head.status, informationFields(head));
}

export function localReplySection(own: LocalReply): string[] {
  return section(own.status, own.fields);
}

function section(status: number, fields: Fields): string[] {
  return [':status', String(status)].concat(lowerCaseNames(fields));
}

const NO_OPTIONS: readonly string[] = [];

const REQUESTS = new MadeOf<{
  readonly section: RequestSection;
  readonly neverIndexed: readonly string[];
  readonly request: IncomingRequest;
}>();

/** `:authority` is the request's host, and a destination only for CONNECT. */
export function incomingRequest(section: RequestSection, neverIndexed: readonly string[]): IncomingRequest {
  const known = REQUESTS.get(section.fields);
  if (known?.section === section && known.neverIndexed === neverIndexed) return known.request;
  const request = make(section, neverIndexed);
  REQUESTS.keep(section.fields, { section, neverIndexed, request }, request.fields);
  return request;
}

function make(section: RequestSection, neverIndexed: readonly string[]): IncomingRequest {
  const { method, authority, contentLength } = section;
  const target = section.kind === 'connect' ? authority : section.path;
  return {
    protocol: 'h2',
    method,
    target,
    targetForm: section.kind === 'connect' ? 'authority' : target === '*' ? 'asterisk' : 'origin',
    host: authority,
    fields: joinCookies(section.fields),
    neverIndexed,
    contentLength,
    connectionOptions: NO_OPTIONS,
  };
}
