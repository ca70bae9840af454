import { randomUUID } from 'node:crypto';
import type { ProxyErrorCode } from '../../platform/errors.ts';
import { grpcStatusOf } from '../exchange/local-reply.ts';
import type { Fields } from '../http/fields.ts';
import { givenRequestId, isGrpcCall, type Protocol, REQUEST_ID_FIELD } from '../http/messages.ts';
import type { OwnAnswer } from '../streams/contract.ts';
import type { AppContext } from './context.ts';

/** What could not be read as a request, as far as it is known. */
interface Unread {
  readonly code: ProxyErrorCode;
  readonly protocol: Protocol;
  /** Empty if the head could not be read that far. */
  readonly fields: Fields;
}

/**
 * Counts and logs what is answered with an error without having become a request.
 * @returns the answer, with the id by which the log names it.
 */
export function turnedAway(
  { noRoute, generation }: Pick<AppContext, 'noRoute' | 'generation'>,
  own: OwnAnswer,
  { code, protocol, fields }: Unread,
): OwnAnswer {
  const requestId = givenRequestId(fields) ?? randomUUID();
  const grpcStatus = isGrpcCall({ protocol, fields }) ? grpcStatusOf(own.fields) : undefined;
  noRoute.turnedAway(code, own.status, protocol);
  if (grpcStatus !== undefined) noRoute.grpcEnded(grpcStatus);
  const { status, body } = own;
  generation().logUnread?.({
    requestId,
    protocol,
    status,
    grpcStatus,
    error: code,
    responseBytes: body.length,
  });
  return { ...own, fields: [...own.fields, REQUEST_ID_FIELD, requestId] };
}
