import { ERRORS, type ProxyErrorCode, type SidecarError } from '../../errors.ts';
import { GRPC_STATUS } from '../../grpc-status.ts';
import { ERROR_FIELD } from '../streams/header-rules.ts';
import type { OwnAnswer } from '../streams/message.ts';
import { retryAfterSeconds } from './retry-after.ts';

/** Clients take 8 KiB of trailers in all by gRPC's own advice; a message may quote a name that the app chose. */
const MESSAGE_BYTES = 1024;

const LONGEST_PUSHBACK_MS = 2 ** 31 - 1;

/**
 * The proxy's own answer to a gRPC call that it does not forward: trailers only, by which every client knows the status
 * and the message as it does the service's own.
 */
export function grpcRefusalOf(error: SidecarError<ProxyErrorCode>): OwnAnswer {
  const retryAfter = retryAfterSeconds(error);
  return {
    status: 200,
    reason: 'OK',
    fields: [
      'content-type',
      'application/grpc',
      'grpc-status',
      String(GRPC_STATUS[ERRORS[error.code].grpc]),
      'grpc-message',
      percentEncoded(error.message),
      ERROR_FIELD,
      error.code,
      // gRFC A6: a client whose policy lets it try again does so then, and not sooner.
      ...(retryAfter === undefined
        ? []
        : ['grpc-retry-pushback-ms', String(Math.min(retryAfter * 1000, LONGEST_PUSHBACK_MS))]),
    ],
    body: '',
    closes: false,
  };
}

/** A message as `grpc-message` has it: UTF-8, of which all but printable ASCII and `%` is percent-encoded; cut at a character. */
function percentEncoded(message: string): string {
  let encoded = '';
  for (const character of message) {
    const next = /^[\x20-\x24\x26-\x7e]$/.test(character) ? character : encodedOctets(character);
    if (encoded.length + next.length > MESSAGE_BYTES) break;
    encoded += next;
  }
  return encoded.trim();
}

function encodedOctets(character: string): string {
  return [...Buffer.from(character)]
    .map((octet) => `%${octet.toString(16).toUpperCase().padStart(2, '0')}`)
    .join('');
}
