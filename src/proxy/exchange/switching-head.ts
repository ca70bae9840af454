import { fieldValues } from '../http/fields.ts';
import type { ResponseHead } from '../http1/response-head.ts';
import { serializeResponseHead } from '../http1/serialize.ts';
import { informationFields } from './header-rules.ts';

/** The upstream's 101 (RFC 9110 §15.2.2), for the app. */
export function switchingHead(head: ResponseHead): string {
  const protocols = fieldValues(head.fields, 'upgrade').join(', ');
  const fields = [...informationFields(head), 'connection', 'upgrade', 'upgrade', protocols];
  return serializeResponseHead(101, head.reason, fields);
}
