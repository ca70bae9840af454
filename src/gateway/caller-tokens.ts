/** Fields by which a request proves its sender: only for the gateway, never for upstreams. */

import type { Fields } from '../proxy/http/fields.ts';
import { MadeOf } from '../proxy/http/lasting-fields.ts';
import type { IncomingRequest } from '../proxy/streams/contract.ts';

/** The gateway's own field, for callers whose libraries reserve Proxy-Authorization. */
const CALLER_FIELD = 'token-sidecar-caller';

const PROXY_AUTHORIZATION_FIELD = 'proxy-authorization';

/** Where names become variables (CGI, WSGI), these are the same as the fields above. */
const ALIKE = /^(?:token[-_]sidecar[-_]caller|proxy[-_]authorization)$/i;

/** RFC 6750 §2.1; the scheme in any case (RFC 9110 §11.1). */
const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i;
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;

/** The token by which a request identifies its caller. */
type ShownToken =
  | { readonly kind: 'none' }
  | { readonly kind: 'token'; readonly token: string }
  /** @property why completes "the request …". */
  | { readonly kind: 'malformed'; readonly why: string }
  | { readonly kind: 'ambiguous'; readonly why: string };

/** Several fields are never trusted, even if their tokens are equal. */
export function shownToken({ fields }: Pick<IncomingRequest, 'fields'>): ShownToken {
  let shown: ShownToken = { kind: 'none' };
  for (let at = 0; at < fields.length; at += 2) {
    const name = (fields[at] as string).toLowerCase();
    if (!isProof(name)) continue;
    if (name.includes('_')) return { kind: 'ambiguous', why: 'names its caller in a field with _ for -' };
    if (shown.kind !== 'none') return { kind: 'ambiguous', why: 'shows more than one token of its caller' };
    shown = tokenOf(name, fields[at + 1] as string);
  }
  return shown;
}

function tokenOf(name: string, value: string): ShownToken {
  const isOwn = name === CALLER_FIELD;
  const token = isOwn ? TOKEN.exec(value)?.[0] : BEARER.exec(value)?.[1];
  if (token !== undefined) return { kind: 'token', token };
  const expected = isOwn ? 'a token alone' : 'Bearer and a token';
  return { kind: 'malformed', why: `has a field ${name} that is not ${expected}` };
}

const WITHOUT = new MadeOf<Fields>();

/** Whether a field of this name is, or may be taken for, a proof. */
function isProof(name: string): boolean {
  return (
    (name.length === CALLER_FIELD.length || name.length === PROXY_AUTHORIZATION_FIELD.length) &&
    ALIKE.test(name)
  );
}

/** The same request without any of them. */
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
