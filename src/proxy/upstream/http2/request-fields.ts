import { SidecarError } from '../../../platform/errors.ts';
import { type Fields, lowerCaseName } from '../../http/fields.ts';
import { MadeOf } from '../../http/lasting-fields.ts';
import type { OutgoingRequest } from '../../streams/contract.ts';
import { isSameRule, offersWebSocket, upstreamFields } from '../../streams/header-rules.ts';

/** Fields about the connection or framing, which HTTP/2 expresses otherwise or not at all (RFC 9113 §8.2.2, §8.3.1). */
const LEFT_BEHIND: ReadonlySet<string> = new Set(['connection', 'host', 'transfer-encoding', 'upgrade']);

const SECTIONS = new MadeOf<{
  readonly request: OutgoingRequest;
  readonly scheme: 'http' | 'https';
  readonly section: Fields;
}>();

/**
 * The HTTP/2 field section of a request: pseudo-fields, then what the rules of every version let pass, with names in
 * lower case.
 * @param scheme of the upstream.
 * @throws {SidecarError} `upstream_protocol_error` when it wants to become a WebSocket, which this upstream is not
 * asked for.
 */
export function requestFields(request: OutgoingRequest, scheme: 'http' | 'https'): Fields {
  const { fields } = request.from;
  const known = SECTIONS.get(fields);
  if (known?.scheme === scheme && isSame(known.request, request)) return known.section;
  const section = make(request, scheme);
  SECTIONS.keep(fields, { request, scheme, section }, section);
  return section;
}

/** Whether two requests with the same fields leave as the same section. */
function isSame(one: OutgoingRequest, other: OutgoingRequest): boolean {
  return (
    isSameRule(one, other) &&
    one.from.method === other.from.method &&
    one.target === other.target &&
    one.hasBody === other.hasBody
  );
}

function make(request: OutgoingRequest, scheme: 'http' | 'https'): string[] {
  const { from, target, authority, hasBody, upgrade } = request;
  // For other protocols, the client must expect that no switch happens (RFC 9110 §7.8).
  if (offersWebSocket(upgrade)) {
    throw new SidecarError(
      'upstream_protocol_error',
      `upstream ${authority} is spoken to in HTTP/2, by which no WebSocket is opened: give WebSockets a route with protocol: http1`,
    );
  }
  // Trailers may follow every body.
  const passed = upstreamFields(from, request, hasBody ? 'chunked' : 'plain');
  const fields = [':method', from.method, ':scheme', scheme, ':authority', authority, ':path', target];
  for (let at = 0; at < passed.length; at += 2) {
    const name = lowerCaseName(passed[at] as string);
    if (!LEFT_BEHIND.has(name)) fields.push(name, passed[at + 1] as string);
  }
  return fields;
}
