import { GRPC_STATUS, type GrpcStatus } from '../../platform/grpc-status.ts';
import { grpcProvesAcceptance, provesAcceptance } from '../../token/bearer-source.ts';
import type { Fields } from '../http/fields.ts';
import { isGrpc } from '../http/grpc-call.ts';
import type { AnswerBody, AnswerHead } from '../streams/message.ts';
import { grpcStatusOf } from './grpc-outcome.ts';

/** What an answer says of the token that its request was sent with. */
export type TokenVerdict =
  | 'accepted'
  | 'refused'
  /** No verdict: an upstream that failed or was overloaded may never have looked at the token. */
  | 'none';

/** The verdict of an answer's head, by its status; 401 refuses (RFC 9110 §15.5.2). */
export function statusVerdict(status: number): TokenVerdict {
  if (status === 401) return 'refused';
  return provesAcceptance(status) ? 'accepted' : 'none';
}

/**
 * The verdict of the head of the answer to a gRPC call. A service that refuses a call before its first message answers
 * with trailers only, in the head; nothing of that answer has been passed on yet. Where messages may follow, the
 * verdict is `in-trailers`: the 200 and its head are sent before anything is decided.
 */
export function grpcHeadVerdict(head: AnswerHead, body: AnswerBody): TokenVerdict | 'in-trailers' {
  if (head.status !== 200 || !isGrpc(head.fields)) return statusVerdict(head.status);
  return body === 'none' ? grpcVerdict(grpcStatusOf(head.fields)) : 'in-trailers';
}

/** The verdict of the trailers of an answer to a gRPC call. */
export function grpcTrailersVerdict(trailers: Fields): TokenVerdict {
  return grpcVerdict(grpcStatusOf(trailers));
}

function grpcVerdict(status: GrpcStatus | undefined): TokenVerdict {
  if (status === GRPC_STATUS.UNAUTHENTICATED) return 'refused';
  return grpcProvesAcceptance(status) ? 'accepted' : 'none';
}
