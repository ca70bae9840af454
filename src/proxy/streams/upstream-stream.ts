import type { ProxyErrorCode, SidecarError } from '../../errors.ts';
import type { Fields } from '../http/fields.ts';
import type { Protocol } from '../http/protocol.ts';
import type { TunnelEnd } from '../tunnel/socket-side.ts';
import type { AnswerBody, AnswerHead, IncomingRequest } from './message.ts';

/**
 * What became of a request whose connection failed:
 * - `unsent`: nothing of it has left this machine;
 * - `unprocessed`: the upstream says that it has not looked at it (RFC 9113 §8.7), and has not answered before;
 * - `unanswered`: the connection had been idle, and ended without a byte of an answer: most likely closed meanwhile;
 * - `lost`: anything else. The upstream may have acted on it.
 */
export type RequestFate = 'unsent' | 'unprocessed' | 'unanswered' | 'lost';

/** A request on its way upstream: what the app sent, and what the proxy makes of it. */
export interface OutgoingRequest {
  readonly from: IncomingRequest;
  /** The request target sent there. */
  readonly target: string;
  /** The upstream's name for itself: Host or `:authority`. */
  readonly authority: string;
  /** Authorization value to inject; undefined injects none. */
  readonly authorization: string | undefined;
  /** Pass the client's own Authorization fields, in which case none is injected beside them. */
  readonly keepClientAuthorization: boolean;
  /** Of this proxy, for the loop guard. */
  readonly instanceId: string;
  /** Protocols to offer in Upgrade; undefined where none is to be switched to. */
  readonly upgrade: string | undefined;
  /** Whether `data` and `end` follow. */
  readonly hasBody: boolean;
}

/** One request to an upstream and its answer, as an exchange knows it. Lent by `UpstreamStreams`. */
export interface UpstreamStream {
  /** The version of HTTP that the upstream gets, as is certain once `ready`. */
  readonly protocol: Protocol;
  /** Whether the request may be sent. */
  readonly ready: boolean;
  /** Whether the system has taken all that was written. */
  readonly allTaken: boolean;
  /** For CONNECT and after `switched`: gives itself up to be one end of a tunnel. */
  readonly tunnelEnd: TunnelEnd;
  /**
   * Writes the head, to leave with the next flush; all of the request where no body follows.
   * @param nowMs on the monotonic clock: from then on the answer is due.
   * @throws {SidecarError} `internal` when anything in it could end a line.
   */
  send(request: OutgoingRequest, nowMs: number): void;
  /** The next piece of the request's body, which is copied when this returns. */
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
  /** Lets the user go who does not want the rest of the held answer. */
  discard(): void;
  /** Lets the user go, and cuts the request. */
  abandon(): void;
  /** Takes back what was lent and not used. */
  giveBack(): void;
}

/** The streams to one upstream. */
export interface UpstreamStreams {
  /** What the upstream speaks with a request that came by HTTP/2; undefined before it was asked. */
  readonly speaks: Protocol | undefined;
  /**
   * A stream of a connection that stands, or of one that is about to be made; one that is not ready says so to `user`
   * once it is.
   * @param request the one that is to be sent: what it came by, and what it needs, decide what it may leave by.
   * @param trustMs of a connection idle for so long or longer it is first found out whether it still stands.
   */
  acquire(request: IncomingRequest, user: UpstreamUser, trustMs: number): UpstreamStream;
  /** A stream of a connection that is about to be made. */
  acquireNew(request: IncomingRequest, user: UpstreamUser): UpstreamStream;
  /**
   * A stream for a request that the upstream refused by REFUSED_STREAM: of another connection where there is one, otherwise
   * of one that is about to be made, or of the same. It is not ready, and says so to `user` once it is.
   */
  acquireAgain(request: IncomingRequest, user: UpstreamUser): UpstreamStream;
  /** A connection for CONNECT, which gives itself up once it stands. */
  acquireTunnel(user: UpstreamUser): UpstreamStream;
  /** Closes connections that carry no request, so that the next one is begun on a new connection. */
  discardIdle(): void;
  /** Takes them out of use: connections end with the requests that they carry. */
  retire(): void;
  /** Closes every connection, and makes none reusable any more. */
  close(): void;
}

/** Who has sent a request on a stream. Called until the answer has ended or failed, or the user abandons it. */
export interface UpstreamUser {
  /**
   * The connection stands: the request may be sent.
   * @param instead takes the place of the stream that was acquired, where the upstream has chosen another version of HTTP.
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
  /** All that came in one piece has been passed. */
  flushAnswer(): void;
  /** The connection takes more of the request. */
  upstreamReady(): void;
  /** Nothing has moved for as long as the route allows. */
  stalled(): void;
  upstreamFailed(error: SidecarError<ProxyErrorCode>, fate: RequestFate): void;
}
