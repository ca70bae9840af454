import type { ProxyErrorCode, SidecarError } from '../../platform/errors.ts';
import type { Fields } from '../http/fields.ts';
import { isGrpcCall } from '../http/grpc-call.ts';
import type { Protocol } from '../http/protocol.ts';
import type { OwnAnswer } from '../streams/message.ts';
import { grpcRefusalOf } from './grpc-refusal.ts';
import { problemOf } from './problem-answer.ts';

/** The proxy's own answer to what did not become a request, in the client's terms. */
export function refusalOf(
  error: SidecarError<ProxyErrorCode>,
  asked: { readonly protocol: Protocol; readonly fields: Fields },
): OwnAnswer {
  return isGrpcCall(asked) ? grpcRefusalOf(error) : problemOf(error);
}
