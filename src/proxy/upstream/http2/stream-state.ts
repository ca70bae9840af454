import type { ProxyErrorCode, SidecarError } from '../../../errors.ts';
import type { Fields } from '../../http/fields.ts';
import type { ByteQueue } from '../../streams/byte-queue.ts';
import type { RequestFate } from '../../streams/upstream-stream.ts';
import type { Http2Connection, WireStream } from './connection.ts';
import type { RequestSending } from './request-sending.ts';

export type Failure = { readonly error: SidecarError<ProxyErrorCode>; readonly fate: RequestFate };

/** What has come since the user asked to hold. */
export interface Held {
  /** No more than the window of the stream, as that is not given back meanwhile. */
  readonly data: ByteQueue;
  end: { readonly trailers: Fields } | Failure | undefined;
}

/** A request is being sent, or its answer read. */
export interface Busy {
  readonly kind: 'busy';
  readonly connection: Http2Connection;
  readonly wire: WireStream;
  /** Whether the connection had brought an answer before. */
  readonly reused: boolean;
  readonly isHead: boolean;
  readonly sending: RequestSending;
  /** Whether `upstreamReady` is due. */
  behind: boolean;
  /** Whether the system has taken any of it. */
  left: boolean;
  anyAnswer: boolean;
  answered: boolean;
  paused: boolean;
  /** Octets of the answer that the window has not been given back for. */
  unreturned: number;
  held: Held | undefined;
}

export type StreamState =
  /** For a connection, or for room on one. */
  | { readonly kind: 'waiting' }
  /** The request may be sent. */
  | { readonly kind: 'lent'; readonly connection: Http2Connection }
  | Busy
  | { readonly kind: 'over' };
