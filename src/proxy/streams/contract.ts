/** The two ports of a transaction: the app's stream and the upstream's, and what passes between them. */

import type { Socket } from 'node:net';
import { type ProxyErrorCode, SidecarError } from '../../platform/errors.ts';
import type { Fields } from '../http/fields.ts';
import type { Protocol } from '../http/messages.ts';
import type { TargetForm } from '../http/syntax.ts';
import type { PassedBytes, TunnelEnd } from '../tunnel/tunnel.ts';

/** A field section with the names of fields meant for the next hop alone. */
export interface FieldSection {
  readonly fields: Fields;
  /** Options of the Connection fields, in lower case (RFC 9110 §7.6.1); HTTP/2 has none. */
  readonly connectionOptions: readonly string[];
  /** Names of fields that no HPACK table on the way may hold (RFC 7541 §7.1.3); HTTP/2 only. */
  readonly neverIndexed?: readonly string[];
}

/** The head of an app's request, in any version of HTTP. */
export interface IncomingRequest extends FieldSection {
  readonly protocol: Protocol;
  readonly method: string;
  readonly target: string;
  readonly targetForm: TargetForm;
  /** The authority that the request is for, as it came: Host or `:authority`. */
  readonly host: string | undefined;
  /** The declared length of the body in octets, if any. */
  readonly contentLength: number | undefined;
}

/** The head of an upstream's answer. */
export interface AnswerHead extends FieldSection {
  readonly status: number;
  /** May be empty; HTTP/2 has none. */
  readonly reason: string;
}

/** The body that follows an answer's head: none, one of the length in Content-Length, or one of unknown length. */
export type AnswerBody = 'none' | 'length' | 'open';

/** An answer of the proxy's own. */
export interface LocalReply {
  readonly status: number;
  readonly reason: string;
  /** Content-type, content-length and the rest. */
  readonly fields: Fields;
  /** ASCII; left out in answer to HEAD. */
  readonly body: string;
  /** The connection cannot, or must not, carry another request. */
  readonly closes: boolean;
}

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
 * The app's side as a transaction sees it: one request and the way back to the client. An HTTP/1.1 connection offers one
 * stream after another, HTTP/2 many at once. Whoever made the transaction tells it about the request's body, an app that
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
  /** Says whether the app keeps up; if not, the transaction is told once it does. */
  flush(): boolean;
  /** @param patienceMs how long the app may take to read what the system has not accepted yet. */
  end(trailers: Fields, patienceMs: number): void;
  /** Sends a whole answer in the proxy's own name; the rest of the request is ignored. */
  answer(own: LocalReply, patienceMs: number): void;
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

/** One request to an upstream and its answer, as a transaction sees it. Lent by `UpstreamStreams`. */
export interface UpstreamStream {
  /** The HTTP version sent upstream; certain once `ready`. */
  readonly protocol: Protocol;
  /** Whether the request may be sent. */
  readonly ready: boolean;
  /** Whether the system has taken all that was written. */
  readonly allTaken: boolean;
  /** Octets of the request that the system has not taken, and of an answer on hold. */
  readonly heldBytes: number;
  /** Of the connection, where it carries no other stream. */
  readonly ownSocket?: Socket | undefined;
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
  /**
   * Releases the user, and cuts the request.
   * @param how with `drain`, only the rest of a held answer is not wanted: it may be read out instead.
   */
  cancel(how?: { readonly drain: boolean }): void;
  /** Takes back the stream, unused. */
  release(): void;
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

/** Has a connection to an upstream, and sends no request on it: of an answer nothing can come. */
export class WithoutRequest implements UpstreamUser {
  connected(_instead?: UpstreamStream): void {}
  informed(): void {}
  answered(): void {}
  switched(): void {}
  answerData(): void {}
  answerEnded(): void {}
  flushAnswer(): void {}
  upstreamReady(): void {}
  stalled(): void {}
  upstreamFailed(_error: SidecarError<ProxyErrorCode>, _delivery: Delivery): void {}
}

/** An HTTP/2 upstream has reset the request (RFC 9113 §6.4). */
export class UpstreamReset extends SidecarError<'upstream_protocol_error'> {
  /** As received; an app that speaks HTTP/2 may be told it too. */
  readonly http2Code: number;

  constructor(message: string, http2Code: number) {
    super('upstream_protocol_error', message);
    this.http2Code = http2Code;
  }
}

/** A connection to an upstream that waits for the next request of its owner. */
interface OwnedConnection {
  cancel(): void;
}

/**
 * Whose a connection to an upstream is, once the upstream takes everything on it for one user's (RFC 4559): those of one
 * connection of the app, and of one caller on it. It carries no requests of others, and ends with its owner.
 */
export class ConnectionOwner {
  /** As the gateway knows it; undefined where callers are not told apart. */
  readonly caller: string | undefined;
  readonly #waiting: OwnedConnection[] = [];
  #gone = false;

  constructor(caller: string | undefined) {
    this.caller = caller;
  }

  /** Whether nothing more will be asked. */
  get gone(): boolean {
    return this.#gone;
  }

  /** Whether any of its connections carries no request. */
  get hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** The connection carries no request: it ends if its owner does. */
  keep(connection: OwnedConnection): void {
    this.#waiting.push(connection);
  }

  /** The connection is in use again, or has ended. */
  release(connection: OwnedConnection): void {
    const index = this.#waiting.indexOf(connection);
    if (index !== -1) this.#waiting.splice(index, 1);
  }

  end(): void {
    this.#gone = true;
    for (const connection of this.#waiting.splice(0)) connection.cancel();
  }
}
