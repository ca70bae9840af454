import { type Fields, fieldValues } from './fields.ts';
import type { Protocol } from './protocol.ts';

/** gRPC's own media type, with or without a message format; not gRPC-Web's, which is HTTP for browsers. */
const MEDIA_TYPE = /^application\/grpc(?:$|[+;\t ])/i;

/** Whether a request is a gRPC call. HTTP/1.1 carries none, and pays nothing for the check. */
export function isGrpcCall({ protocol, fields }: { protocol: Protocol; fields: Fields }): boolean {
  return protocol === 'h2' && isGrpc(fields);
}

/** Whether the message with these fields is a gRPC one. */
export function isGrpc(fields: Fields): boolean {
  const types = fieldValues(fields, 'content-type');
  return types.length === 1 && MEDIA_TYPE.test(types[0] as string);
}
