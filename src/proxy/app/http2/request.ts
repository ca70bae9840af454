import { joinCookies } from '../../http/fields.ts';
import { MadeOf } from '../../http/lasting-fields.ts';
import type { RequestSection } from '../../http2/messages.ts';
import type { IncomingRequest } from '../../streams/contract.ts';

const NO_OPTIONS: readonly string[] = [];

const REQUESTS = new MadeOf<{
  readonly section: RequestSection;
  readonly neverIndexed: readonly string[];
  readonly request: IncomingRequest;
}>();

/**
 * An HTTP/2 request in the form of every version. `:authority` is the host that it is for, and never a destination by
 * itself: only for CONNECT does HTTP/2 have a target that names one, as for a forward proxy.
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
