import { lowerCaseName } from '../http/field-names.ts';
import { type Fields, fieldValues } from '../http/fields.ts';
import type { RequestHead } from '../http1/request-head.ts';
import { serializeRequestHead, serializeResponseHead } from '../http1/serialize.ts';

/** A number that can be counted down. */
const COUNT = /^[0-9]{1,15}$/;

/** Credentials are not for whoever asks what arrived (RFC 9110 §9.3.8). */
const NOT_REFLECTED: ReadonlySet<string> = new Set(['authorization', 'cookie', 'proxy-authorization']);

/**
 * Whether a request is not to be forwarded any further, because its Max-Forwards is used up; else counts it down
 * (RFC 9110 §7.6.2). The field has a meaning for OPTIONS and TRACE alone.
 */
export function isLastHop({ method, fields }: Pick<RequestHead, 'method' | 'fields'>): boolean {
  if (method !== 'OPTIONS' && method !== 'TRACE') return false;
  const counts = fieldValues(fields, 'max-forwards').filter((value) => COUNT.test(value));
  if (counts.some((count) => Number(count) === 0)) return true;
  for (let at = 0; counts.length > 0 && at < fields.length; at += 2) {
    const value = fields[at + 1] as string;
    if (lowerCaseName(fields[at] as string) !== 'max-forwards' || !COUNT.test(value)) continue;
    fields[at + 1] = String(Number(value) - 1);
  }
  return false;
}

/**
 * The answer of the last hop: to OPTIONS that it is there, to TRACE what arrived (RFC 9110 §9.3.7, §9.3.8).
 * @param closes whether the connection ends with it.
 */
export function lastHopAnswer({ method, target, fields }: RequestHead, closes: boolean): string {
  const body = method === 'TRACE' ? serializeRequestHead(method, target, reflected(fields)) : '';
  const type = method === 'TRACE' ? ['content-type', 'message/http'] : [];
  const connection = closes ? ['connection', 'close'] : [];
  const answer = [...type, 'content-length', String(body.length), 'cache-control', 'no-store', ...connection];
  return serializeResponseHead(200, 'OK', answer) + body;
}

function reflected(fields: Fields): string[] {
  return fields.filter((_, at) => !NOT_REFLECTED.has(lowerCaseName(fields[at - (at % 2)] as string)));
}
