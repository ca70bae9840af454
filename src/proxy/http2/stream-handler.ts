/** What a connection tells of its streams. */

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
  /** The peer says by GOAWAY that it has not looked at it: it may be tried again elsewhere. */
  | { readonly kind: 'unprocessed' };

/** What is told of streams. Buffers are there until the call returns. A handler may send, and reset, as it is called. */
export interface StreamHandler<S> {
  /** A piece of the body, not padding; empty only with `endStream`. */
  data(stream: S, data: Buffer, endStream: boolean): void;
  /** Trailers, which end the peer's side. */
  trailers(stream: S, fields: Fields, neverIndexed: readonly string[]): void;
  /** Nothing more comes, or may be sent. */
  broken(stream: S, how: Broken): void;
  /** A window grew: of the stream, or where there is none of the connection or of all streams. */
  writable(stream: S | undefined): void;
  /** The peer will take no more streams. */
  goaway(frame: GoawayFrame): void;
  /** The peer has answered a PING; left out by who sends none. */
  pong?(opaque: Buffer): void;
}

/** A stream with whatever the handler wants to find there again. */
export interface MessageStream<T> extends Stream {
  /** What the peer's body is held against, once its head has come. */
  body: BodyLength | undefined;
  /** The handler's own. */
  context: T | undefined;
  /** Whether CONNECT made it a tunnel, in which HEADERS have no place (RFC 9113 §8.5). */
  tunnel: boolean;
}
