import { lowerCaseName } from '../http/field-names.ts';
import { type Fields, fieldValues } from '../http/fields.ts';
import { serializeRequestHead } from '../http1/serialize.ts';
import type { IncomingRequest, OwnAnswer } from '../streams/message.ts';

type LastHopRequest = Pick<IncomingRequest, 'method' | 'target' | 'fields'>;

/** A number that can be counted down. */
const COUNT = /^[0-9]{1,15}$/;

/** TRACE must not reflect credentials (RFC 9110 §9.3.8). */
const NOT_REFLECTED: ReadonlySet<string> = new Set(['authorization', 'cookie', 'proxy-authorization']);

/**
 * Whether the request's Max-Forwards is used up, so that it must not be forwarded; otherwise counts it down (RFC 9110
 * §7.6.2). The field applies to OPTIONS and TRACE only.
 */
export function isLastHop({ method, fields }: Pick<LastHopRequest, 'method' | 'fields'>): boolean {
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
 * The last hop's answer: an empty 200 to OPTIONS; to TRACE the request as it arrived (RFC 9110 §9.3.7, §9.3.8), in
 * HTTP/1.1 form (RFC 9112 §10.1).
 */
export function lastHopAnswer({ method, target, fields }: LastHopRequest): OwnAnswer {
  const body = method === 'TRACE' ? serializeRequestHead(method, target, reflected(fields)) : '';
  const type = method === 'TRACE' ? ['content-type', 'message/http'] : [];
  return {
    status: 200,
    reason: 'OK',
    fields: [...type, 'content-length', String(body.length), 'cache-control', 'no-store'],
    body,
    closes: false,
  };
}

function reflected(fields: Fields): string[] {
  return fields.filter((_, at) => !NOT_REFLECTED.has(lowerCaseName(fields[at - (at % 2)] as string)));
}
