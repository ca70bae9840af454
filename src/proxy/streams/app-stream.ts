import type { ProxyErrorCode, SidecarError } from '../../errors.ts';
import type { Fields } from '../http/fields.ts';
import type { PassedBytes } from '../tunnel/passed-bytes.ts';
import type { TunnelEnd } from '../tunnel/socket-side.ts';
import type { AnswerBody, AnswerHead, OwnAnswer } from './message.ts';

/** Who serves a connection that was given up, as that knows it. */
export interface ConnectionHeir {
  /** Whether a request is being served. */
  readonly busy: boolean;
  closeIdle(): void;
  drain(): void;
}

/** A connection that a CONNECT has given up, and that speaks HTTP again once its TLS has ended here. */
export interface GivenUpConnection extends TunnelEnd {
  /** Says who serves it from here on. */
  bequeath(heir: ConnectionHeir): void;
  /** To be called whenever one of its requests is settled. */
  onFree(): void;
}

/**
 * What an exchange knows of the app's side: one request and the way back to who asked. HTTP/1.1 offers one stream of a
 * connection after another, HTTP/2 many at once. The exchange is told of the request's body, of an app that keeps up
 * again or has left, and of the answer's end, by whoever made it; nothing is asked of a stream after `end`, `answer`,
 * `cut` or `becomeTunnel`.
 */
export interface AppStream {
  /** Whether the app has sent its request whole. */
  readonly requestWhole: boolean;
  /** Whether the client waits for 100 before it sends the body (RFC 9110 §10.1.1). */
  readonly awaitsContinue: boolean;
  /** Protocols that the client offers to switch to (RFC 9110 §7.8), as Upgrade names them. */
  readonly offeredProtocols: string | undefined;
  /** Passes an informational answer (RFC 9110 §15.2) to a client that understands it, 100 only if it was asked for. */
  inform(head: AnswerHead): void;
  /** Begins the final answer, and passes its head on with the next flush. */
  respond(head: AnswerHead, body: AnswerBody): void;
  /** The next piece of the answer's body, which is copied or gone when this returns. */
  data(slice: Buffer): void;
  /** Says whether the app keeps up; if not, the exchange is told once it does. */
  flush(): boolean;
  /** @param patienceMs how long the app may take to read what the system has not taken yet. */
  end(trailers: Fields, patienceMs: number): void;
  /** Answers in the proxy's own name, from head to end; the rest of the request is of no interest any more. */
  answer(own: OwnAnswer, patienceMs: number): void;
  /** Ends the answer amid it, so that the app knows that it is not whole. @param why what the app is told of it, where it can be. */
  cut(why: SidecarError<ProxyErrorCode>): void;
  /** Takes no more of the request until `proceed`. */
  hold(): void;
  /** Goes on where `hold` stopped. A stream that has ended takes no notice. */
  proceed(): void;
  /**
   * Becomes a tunnel, from here on bytes both ways.
   * @param switched the upstream's 101 for the app; undefined for the answer to a CONNECT.
   * @param idleMs without a byte in either direction for this long it is cut.
   * @param bytes counts what passes, where somebody wants to know.
   */
  becomeTunnel(
    switched: AnswerHead | undefined,
    to: TunnelEnd,
    idleMs: number,
    bytes: PassedBytes | undefined,
  ): void;
  /** Answers a CONNECT with 200 and gives its connection up; undefined, and nothing done, where others share that. */
  giveUp(): GivenUpConnection | undefined;
}
