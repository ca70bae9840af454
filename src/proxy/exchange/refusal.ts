import type { ProxyErrorCode, SidecarError } from '../../errors.ts';
import type { IncomingRequest, OwnAnswer } from '../streams/message.ts';
import { isGrpcCall } from './grpc-call.ts';
import { grpcRefusalOf } from './grpc-refusal.ts';
import { problemOf } from './problem-answer.ts';

/** The proxy's own answer to a request that it does not forward, as who asked understands it. */
export function refusalOf(
  error: SidecarError<ProxyErrorCode>,
  request: Pick<IncomingRequest, 'protocol' | 'fields'>,
): OwnAnswer {
  return isGrpcCall(request) ? grpcRefusalOf(error) : problemOf(error);
}
