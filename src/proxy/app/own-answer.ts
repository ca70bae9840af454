import { serializeResponseHead } from '../http1/serialize.ts';
import type { OwnAnswer } from '../streams/contract.ts';

/**
 * The whole message.
 * @param method of the request: the answer to HEAD has no body.
 * @param closes whether the connection ends with it.
 */
export function ownAnswerMessage(own: OwnAnswer, method: string, closes: boolean): string {
  const fields = closes ? [...own.fields, 'connection', 'close'] : own.fields;
  const head = serializeResponseHead(own.status, own.reason, fields);
  return method === 'HEAD' ? head : head + own.body;
}
