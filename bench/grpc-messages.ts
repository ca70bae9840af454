/** So many messages, each behind the octet and the length that gRPC puts before it. */
export function grpcMessages(bytes: number, count: number): Buffer {
  const message = Buffer.alloc(5 + bytes, 'x');
  message.writeUInt8(0, 0);
  message.writeUInt32BE(bytes, 1);
  return Buffer.concat(Array.from({ length: count }, () => message));
}
