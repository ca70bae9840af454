import type { GrpcStatus } from '../../platform/grpc-status.ts';
import { type Fields, fieldValues } from '../http/fields.ts';

/** `grpc-status`: decimal digits without leading zeros. */
const STATUS = /^(?:[0-9]|1[0-6])$/;

/** The outcome of a gRPC call, from its trailers or the head of a trailers-only answer; undefined if there is none. */
export function grpcStatusOf(fields: Fields): GrpcStatus | undefined {
  const values = fieldValues(fields, 'grpc-status');
  if (values.length === 0) return undefined;
  const [value] = values;
  return values.length === 1 && STATUS.test(value as string) ? Number(value) : 'other';
}
