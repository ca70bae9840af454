import type { ProxyErrorCode, SidecarError } from '../../platform/errors.ts';
import type { Fields } from '../http/fields.ts';
import type { Protocol } from '../http/messages.ts';
import type { TunnelEnd } from '../tunnel/tunnel.ts';
import type { ConnectionOwner } from './connection-owner.ts';
import type { AnswerBody, AnswerHead, IncomingRequest } from './message.ts';

/**
 * What became of a request whose connection failed:
 * - `unsent`: nothing of it has left this machine;
 * - `unprocessed`: the upstream says that it has not processed it (RFC 9113 §8.7), and had not answered;
 * - `unanswered`: the connection had been idle and closed without a byte of an answer: most likely closed meanwhile;
 * - `lost`: anything else. The upstream may have acted on it.
 */
export type Delivery = 'unsent' | 'unprocessed' | 'unanswered' | 'lost';

/** A request on its way upstream: what the app sent, and what the proxy makes of it. */
export interface OutgoingRequest {
  readonly from: IncomingRequest;
  /** The request target sent upstream. */
  readonly target: string;
  /** The upstream's name for itself: Host or `:authority`. */
  readonly authority: string;
  /** Authorization value to inject; undefined injects none. */
  readonly authorization: string | undefined;
  /** Passes the client's own Authorization fields; none is injected beside them. */
  readonly keepClientAuthorization: boolean;
  /** Identifies this proxy to the loop guard. */
  readonly instanceId: string;
  /** Protocols to offer in Upgrade; undefined to offer none. */
  readonly upgrade: string | undefined;
  /** Whether `data` and `end` follow. */
  readonly hasBody: boolean;
}

/** One request to an upstream and its answer, as an exchange sees it. Lent by `UpstreamStreams`. */
export interface UpstreamStream {
  /** The HTTP version sent upstream; certain once `ready`. */
  readonly protocol: Protocol;
  /** Whether the request may be sent. */
  readonly ready: boolean;
  /** Whether the system has taken all that was written. */
  readonly allTaken: boolean;
  /** Octets of the request that the system has not taken, and of an answer on hold. */
  readonly heldBytes: number;
  /** For CONNECT and after `switched`: becomes one end of a tunnel. */
  readonly tunnelEnd: TunnelEnd;
  /**
   * Says that the request authenticates the connection (RFC 4559), which is its user's from here on. Called before `send`.
   * @throws {SidecarError} `authorization_needs_http1` where others share the connection.
   */
  tie(): void;
  /**
   * Writes the head, or the whole request where no body follows; it leaves with the next flush.
   * @param nowMs on the monotonic clock: from then on the answer is due.
   * @throws {SidecarError} `internal` when anything in it could end a line.
   */
  send(request: OutgoingRequest, nowMs: number): void;
  /** The next piece of the request's body, copied by the time this returns. */
  data(slice: Buffer): void;
  /** Says that the request has been written whole: from now on the answer is due. */
  end(trailers: Fields, nowMs: number): void;
  /** Sends what was written; says whether the upstream keeps up. If not, `upstreamReady` is called once it does. */
  flush(): boolean;
  /** Says that bytes have moved, or that there was room for more. */
  touch(): void;
  /** Reads no more of the answer until `resume`: the app has to catch up. */
  pause(): void;
  resume(): void;
  /** Called amid `answered`: passes nothing on until `proceed`. */
  hold(): void;
  /** Goes on where `hold` stopped. */
  proceed(): void;
  /** Releases a user who does not want the rest of the held answer. */
  discard(): void;
  /** Releases the user, and cuts the request. */
  abandon(): void;
  /** Takes back the stream, unused. */
  giveBack(): void;
}

/** The streams to one upstream. */
export interface UpstreamStreams {
  /** The version that the upstream speaks for requests that came by HTTP/2; undefined until it was asked. */
  readonly speaks: Protocol | undefined;
  /**
   * A stream of an open connection, or of one about to be made. One that is not ready calls `connected` of `user` once
   * it is.
   * @param request the one to send: the version it came by and what it needs decide which version it may leave by.
   * @param trustMs a connection idle for this long or longer is first checked to be open.
   */
  acquire(request: IncomingRequest, user: UpstreamUser, trustMs: number): UpstreamStream;
  /** A stream of a connection about to be made. */
  acquireNew(request: IncomingRequest, user: UpstreamUser): UpstreamStream;
  /**
   * A stream for a request that the upstream refused with REFUSED_STREAM: of another connection where there is one,
   * otherwise of one about to be made, or of the same. It is not ready, and calls `connected` of `user` once it is.
   */
  acquireAgain(request: IncomingRequest, user: UpstreamUser): UpstreamStream;
  /** A connection for CONNECT, which becomes a tunnel end once it is open. */
  acquireTunnel(user: UpstreamUser): UpstreamStream;
  /** Closes connections that carry no request, so that the next request of this user starts on a new one. */
  discardIdle(user: UpstreamUser): void;
  /** Takes the connections out of use: each closes once its requests have ended. */
  retire(): void;
  /** Closes every connection, and lets none be reused. */
  close(): void;
}

/** The sender of a request on a stream. Called until the answer has ended or failed, or the user abandons it. */
export interface UpstreamUser {
  /** For whom it sends; absent where callers are not told apart. No other shares a connection of HTTP/2 with it. */
  readonly caller?: string | undefined;
  /** Whose a connection becomes that authenticates this user; absent where it could be nobody's alone. */
  readonly owner?: ConnectionOwner | undefined;
  /**
   * The connection is open: the request may be sent.
   * @param instead replaces the acquired stream where the upstream has chosen another HTTP version.
   */
  connected(instead?: UpstreamStream): void;
  /** An informational answer other than 101. */
  informed(head: AnswerHead): void;
  /** The head of the final answer. */
  answered(head: AnswerHead, body: AnswerBody): void;
  /** A 101: the user must take the connection over. @throws {SidecarError} if it did not ask for it. */
  switched(head: AnswerHead): void;
  answerData(slice: Buffer): void;
  answerEnded(trailers: Fields): void;
  /** Everything that came in one piece has been passed on. */
  flushAnswer(): void;
  /** The connection takes more of the request. */
  upstreamReady(): void;
  /** Nothing has moved for as long as the route allows. */
  stalled(): void;
  upstreamFailed(error: SidecarError<ProxyErrorCode>, delivery: Delivery): void;
}
