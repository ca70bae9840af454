/** What the proxy understands of gRPC over HTTP/2: how a call is told, and where its outcome stands. */

import type { GrpcStatus } from '../../grpc-status.ts';
import { type Fields, fieldValues } from '../http/fields.ts';
import type { IncomingRequest } from '../streams/message.ts';

/** gRPC's own media type, with or without what the messages are written in; not gRPC-Web's, which is HTTP for browsers. */
const MEDIA_TYPE = /^application\/grpc(?:$|[+;\t ])/i;

/** `grpc-status`: decimal digits without leading zeros. */
const STATUS = /^(?:[0-9]|1[0-6])$/;

/** Whether a request is a gRPC call. There are none over HTTP/1.1, which so pays nothing for them. */
export function isGrpcCall({ protocol, fields }: Pick<IncomingRequest, 'protocol' | 'fields'>): boolean {
  return protocol === 'h2' && isGrpc(fields);
}

/** Whether the message with these fields is of gRPC. */
export function isGrpc(fields: Fields): boolean {
  const types = fieldValues(fields, 'content-type');
  return types.length === 1 && MEDIA_TYPE.test(types[0] as string);
}

/** The status in trailers, or in the head of an answer that is trailers only; undefined where there is none. */
export function grpcStatusOf(fields: Fields): GrpcStatus | undefined {
  const values = fieldValues(fields, 'grpc-status');
  if (values.length === 0) return undefined;
  const [value] = values;
  return values.length === 1 && STATUS.test(value as string) ? Number(value) : 'other';
}
