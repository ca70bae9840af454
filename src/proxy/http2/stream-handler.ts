/** What a connection reports about its streams. */

import type { BodyLength } from './content-length.ts';
import type { ErrorCode } from './error-code.ts';
import type { FaultReason } from './fault.ts';
import type { Fields } from './field-section.ts';
import type { GoawayFrame } from './frame.ts';
import type { Stream } from './streams.ts';

/** How a stream ended, if not by itself. */
export type Broken =
  /** The peer reset it. */
  | { readonly kind: 'reset'; readonly code: ErrorCode }
  /** The peer broke a rule, and this side reset it. */
  | { readonly kind: 'fault'; readonly reason: FaultReason }
  /** GOAWAY says that the peer has not processed it: it may be retried elsewhere. */
  | { readonly kind: 'unprocessed' };

/** Receives the events of streams. Buffers are valid until the call returns. A handler may send, and reset, within a call. */
export interface StreamHandler<S> {
  /** A piece of the body, not padding; empty only with `endStream`. */
  data(stream: S, data: Buffer, endStream: boolean): void;
  /** Trailers, which end the peer's side. */
  trailers(stream: S, fields: Fields, neverIndexed: readonly string[]): void;
  /** Nothing more comes, or may be sent. */
  broken(stream: S, how: Broken): void;
  /** A window grew: that of `stream`, or, if undefined, that of the connection or of all streams. */
  writable(stream: S | undefined): void;
  /** The peer will take no more streams. */
  goaway(frame: GoawayFrame): void;
  /** The peer has answered a PING; absent if none is sent. */
  pong?(opaque: Buffer): void;
}

/** A stream with the handler's own context. */
export interface MessageStream<T> extends Stream {
  /** Checks the length of the peer's body, once its head has come. */
  body: BodyLength | undefined;
  /** The handler's own. */
  context: T | undefined;
  /** Whether CONNECT made it a tunnel, which carries no HEADERS (RFC 9113 §8.5). */
  tunnel: boolean;
}
