/** Fields by which a request proves who sent it: for the gateway alone, and never for what is behind it. */

import { MadeOf } from '../proxy/http/lasting-fields.ts';
import type { IncomingRequest } from '../proxy/streams/message.ts';

/** Of the gateway's own, for callers whose libraries keep Proxy-Authorization to themselves. */
export const CALLER_FIELD = 'token-sidecar-caller';

export const PROXY_AUTHORIZATION_FIELD = 'proxy-authorization';

/** Where names become variables (CGI, WSGI), these would become the fields above. */
const ALIKE = /^(?:token[-_]sidecar[-_]caller|proxy[-_]authorization)$/i;

const WITHOUT = new MadeOf<string[]>();

/** Whether a field of this name is, or may be taken for, one of them. */
export function isProof(name: string): boolean {
  return (
    (name.length === CALLER_FIELD.length || name.length === PROXY_AUTHORIZATION_FIELD.length) &&
    ALIKE.test(name)
  );
}

/** The same request where it has none of them. */
export function withoutProofs(request: IncomingRequest): IncomingRequest {
  const { fields } = request;
  const known = WITHOUT.get(fields);
  if (known !== undefined) return { ...request, fields: known };
  if (!hasProof(fields)) return request;
  const left: string[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as string;
    if (!isProof(name)) left.push(name, fields[at + 1] as string);
  }
  WITHOUT.keep(fields, left, left);
  return { ...request, fields: left };
}

function hasProof(fields: readonly string[]): boolean {
  for (let at = 0; at < fields.length; at += 2) if (isProof(fields[at] as string)) return true;
  return false;
}
