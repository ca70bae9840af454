import { MadeOf } from '../../http/lasting-fields.ts';
import { joinCookies } from '../../http2/cookie-crumbs.ts';
import type { RequestSection } from '../../http2/request-section.ts';
import type { IncomingRequest } from '../../streams/message.ts';

const NO_OPTIONS: readonly string[] = [];

const REQUESTS = new MadeOf<{
  readonly section: RequestSection;
  readonly neverIndexed: readonly string[];
  readonly request: IncomingRequest;
}>();

/**
 * A request of HTTP/2 as every version has it. `:authority` is the host it is for, and never a destination by itself: a
 * target that names one, as a forward proxy takes it, has HTTP/2 for CONNECT alone.
 */
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
