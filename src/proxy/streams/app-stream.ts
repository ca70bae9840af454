import type { ProxyErrorCode, SidecarError } from '../../platform/errors.ts';
import type { Fields } from '../http/fields.ts';
import type { PassedBytes, TunnelEnd } from '../tunnel/tunnel.ts';
import type { ConnectionOwner } from './connection-owner.ts';
import type { AnswerBody, AnswerHead, OwnAnswer } from './message.ts';

/** The new server of a given-up connection, as the connection sees it. */
export interface ConnectionSuccessor {
  /** Whether a request is being served. */
  readonly busy: boolean;
  closeIdle(): void;
  drain(): void;
}

/** A connection that a CONNECT has given up, and that speaks HTTP again once its TLS has ended here. */
export interface GivenUpConnection extends TunnelEnd {
  /** Says who serves it from here on. */
  handOff(successor: ConnectionSuccessor): void;
  /** To be called whenever one of its requests is settled. */
  onFree(): void;
}

/**
 * The app's side as an exchange sees it: one request and the way back to the client. An HTTP/1.1 connection offers one
 * stream after another, HTTP/2 many at once. Whoever made the exchange tells it about the request's body, an app that
 * keeps up again or has left, and the answer's end. A stream is not used after `end`, `answer`, `cut` or
 * `becomeTunnel`.
 */
export interface AppStream {
  /** Whether the app has sent its request whole. */
  readonly requestWhole: boolean;
  /** Whether the client waits for 100 before it sends the body (RFC 9110 §10.1.1). */
  readonly awaitsContinue: boolean;
  /** Protocols that the client offers to switch to (RFC 9110 §7.8), as Upgrade names them. */
  readonly offeredProtocols: string | undefined;
  /**
   * The stream's connection and its present caller, as an owner of connections to upstreams; undefined where other streams
   * share the connection.
   */
  ownerFor(caller: string | undefined): ConnectionOwner | undefined;
  /** Passes an informational answer (RFC 9110 §15.2) to a client that understands it, 100 only if it was asked for. */
  inform(head: AnswerHead): void;
  /** Begins the final answer, and passes its head on with the next flush. */
  respond(head: AnswerHead, body: AnswerBody): void;
  /** The next piece of the answer's body, copied or sent by the time this returns. */
  data(slice: Buffer): void;
  /** Says whether the app keeps up; if not, the exchange is told once it does. */
  flush(): boolean;
  /** @param patienceMs how long the app may take to read what the system has not accepted yet. */
  end(trailers: Fields, patienceMs: number): void;
  /** Sends a whole answer in the proxy's own name; the rest of the request is ignored. */
  answer(own: OwnAnswer, patienceMs: number): void;
  /** Cuts the answer short, so that the app knows it is incomplete. @param why is told to the app where possible. */
  cut(why: SidecarError<ProxyErrorCode>): void;
  /** Takes no more of the request until `proceed`. */
  hold(): void;
  /** Goes on where `hold` stopped. Does nothing on a stream that has ended. */
  proceed(): void;
  /**
   * Becomes a tunnel, from here on bytes both ways.
   * @param switched the upstream's 101 for the app; undefined for the answer to a CONNECT.
   * @param idleMs the tunnel is cut after this long without a byte in either direction.
   * @param bytes counts what passes; undefined where nobody needs it.
   */
  becomeTunnel(
    switched: AnswerHead | undefined,
    to: TunnelEnd,
    idleMs: number,
    bytes: PassedBytes | undefined,
  ): void;
  /**
   * Answers a CONNECT with 200 and gives up its connection; does nothing and returns undefined where other streams
   * share it.
   */
  giveUp(): GivenUpConnection | undefined;
}
