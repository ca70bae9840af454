import { lowerCaseName } from '../http/field-names.ts';
import { type Fields, fieldValues } from '../http/fields.ts';
import { serializeRequestHead } from '../http1/serialize.ts';
import type { IncomingRequest, OwnAnswer } from '../streams/message.ts';

/** A number that can be counted down. */
const COUNT = /^[0-9]{1,15}$/;

/** TRACE must not reflect credentials (RFC 9110 §9.3.8). */
const NOT_REFLECTED: ReadonlySet<string> = new Set(['authorization', 'cookie', 'proxy-authorization']);

/**
 * The fields with Max-Forwards counted down (RFC 9110 §7.6.2); undefined where it is used up, so that the request must
 * not be forwarded. It applies to OPTIONS and TRACE only.
 */
export function countedDown(request: Pick<IncomingRequest, 'method' | 'fields'>): Fields | undefined {
  const { method, fields } = request;
  if (method !== 'OPTIONS' && method !== 'TRACE') return fields;
  const counts = fieldValues(fields, 'max-forwards').filter((value) => COUNT.test(value));
  if (counts.length === 0) return fields;
  if (counts.some((count) => Number(count) === 0)) return undefined;
  return fields.map((part, at) => {
    const isCount =
      at % 2 === 1 && lowerCaseName(fields[at - 1] as string) === 'max-forwards' && COUNT.test(part);
    return isCount ? String(Number(part) - 1) : part;
  });
}

/**
 * The last hop's answer: an empty 200 to OPTIONS; to TRACE the request as it arrived (RFC 9110 §9.3.7, §9.3.8), in
 * HTTP/1.1 form (RFC 9112 §10.1).
 */
export function lastHopAnswer(request: Pick<IncomingRequest, 'method' | 'target' | 'fields'>): OwnAnswer {
  const { method, target, fields } = request;
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
