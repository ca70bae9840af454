/** Why a Valkey or Redis server fails, from its client's errors. */

import { ConnectionTimeoutError, ErrorReply, SocketClosedUnexpectedlyError } from '@redis/client';
import { systemCodeOf } from '../../platform/errors.ts';
import { UnaskedBytes } from './measured-connection.ts';
import type { StoreFailure } from './token-store.ts';

/** What to do about the errors that occur in practice. */
const REFUSALS: Readonly<Record<string, string>> = {
  WRONGPASS: 'it refuses our user and password',
  NOAUTH: 'it wants a password',
  NOPERM: 'our user lacks a right: it needs the commands PTTL, GETRANGE, SET and DEL on our names',
  OOM: 'it has no room: give it a maxmemory-policy that evicts',
  READONLY: 'it is a replica, which takes no values',
  LOADING: 'it is still loading its data',
  MOVED: 'it is one of a cluster, which is not supported',
};

export function storeFailure(error: unknown): StoreFailure {
  if (error instanceof ErrorReply) {
    const code = errorCodeOf(error);
    const meaning = code === undefined ? undefined : REFUSALS[code];
    return { reason: 'refused', detail: `${meaning ?? 'it answers with an error'} (${code ?? 'ERR'})` };
  }
  if (error instanceof ConnectionTimeoutError) return { reason: 'timeout', detail: 'no connection in time' };
  if (error instanceof SocketClosedUnexpectedlyError) {
    return { reason: 'unreachable', detail: 'it closed the connection' };
  }
  if (error instanceof UnaskedBytes)
    return { reason: 'protocol', detail: 'it sends more than it was asked for' };
  const code = systemCodeOf(error);
  if (code !== undefined) return { reason: isOfTls(code) ? 'tls' : 'unreachable', detail: code };
  return { reason: 'protocol', detail: 'it answers with something that is not RESP' };
}

/** The first word of an error, if it is a code of the protocol. */
export function errorCodeOf({ message }: ErrorReply): string | undefined {
  return /^[A-Z]{2,20}(?= |$)/.exec(message)?.[0];
}

/** The codes by which OpenSSL and Node distrust a certificate. */
function isOfTls(code: string): boolean {
  return /^ERR_(TLS|SSL|OSSL)|CERT|SIGNATURE|ISSUER|EPROTO|HOSTNAME_MISMATCH|INVALID_(CA|PURPOSE)/.test(code);
}
