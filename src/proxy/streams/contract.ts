/** The ports of a transaction, the app's stream and the upstream's, and what passes between them. */

import type { Socket } from 'node:net';
import { type ProxyErrorCode, SidecarError } from '../../platform/errors.ts';
import type { Fields } from '../http/fields.ts';
import type { Protocol } from '../http/messages.ts';
import type { TargetForm } from '../http/syntax.ts';
import type { PassedBytes, TunnelEnd } from '../tunnel/tunnel.ts';

export interface FieldSection {
  readonly fields: Fields;
  /** Options of the Connection fields, in lower case (RFC 9110 §7.6.1); HTTP/2 has none. */
  readonly connectionOptions: readonly string[];
  /** Fields that no HPACK table may hold (RFC 7541 §7.1.3); HTTP/2 only. */
  readonly neverIndexed?: readonly string[];
}

export interface IncomingRequest extends FieldSection {
  readonly protocol: Protocol;
  readonly method: string;
  readonly target: string;
  readonly targetForm: TargetForm;
  /** As it came: Host or `:authority`. */
  readonly host: string | undefined;
  /** The declared length of the body in octets. */
  readonly contentLength: number | undefined;
}

export interface AnswerHead extends FieldSection {
  readonly status: number;
  /** May be empty; HTTP/2 has none. */
  readonly reason: string;
}

/** The body after an answer's head: none, as long as Content-Length says, or of unknown length. */
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

/** Serves a given-up connection. */
export interface ConnectionSuccessor {
  readonly busy: boolean;
  closeIdle(): void;
  drain(): void;
}

/** A CONNECT has given it up; it speaks HTTP again inside TLS that ends here. */
export interface GivenUpConnection extends TunnelEnd {
  handOff(successor: ConnectionSuccessor): void;
  /** Call it whenever one of its requests is settled. */
  onFree(): void;
}

/**
 * One request of an app and the way back. Whoever made the transaction tells it of the request's body, an app
 * that keeps up again or has left, and the answer's end. Do not use a stream after `end`, `answer`, `cut` or
 * `becomeTunnel`.
 */
export interface AppStream {
  readonly requestWhole: boolean;
  /** The client waits for 100 before it sends the body (RFC 9110 §10.1.1). */
  readonly awaitsContinue: boolean;
  /** The value of Upgrade (RFC 9110 §7.8). */
  readonly offeredProtocols: string | undefined;
  /** The connection and its present caller as an owner; undefined if other streams share the connection. */
  ownerFor(caller: string | undefined): ConnectionOwner | undefined;
  /**
   * Passes an informational answer (RFC 9110 §15.2) to a client that understands it; 100 only if asked for.
   */
  inform(head: AnswerHead): void;
  /** The head of the final answer leaves with the next flush. */
  respond(head: AnswerHead, body: AnswerBody): void;
  /** The slice is copied or sent by the time this returns. */
  data(slice: Buffer): void;
  /** Says whether the app keeps up; if not, the transaction is told once it does. */
  flush(): boolean;
  /** @param patienceMs how long the app may take to read what the system has not accepted yet. */
  end(trailers: Fields, patienceMs: number): void;
  /** Sends a whole answer of the proxy's own; the rest of the request is ignored. */
  answer(own: LocalReply, patienceMs: number): void;
  /** Cuts the answer so that the app notices. @param why is told to the app if possible. */
  cut(why: SidecarError<ProxyErrorCode>): void;
  /** Takes no more of the request until `proceed`. */
  hold(): void;
  /** Does nothing on a stream that has ended. */
  proceed(): void;
  /**
   * Passes bytes both ways from here on.
   * @param switched the upstream's 101 for the app; undefined for the answer to a CONNECT.
   * @param idleMs without a byte in either direction, the tunnel is cut after this.
   * @param bytes counts what passes, if anybody needs it.
   */
  becomeTunnel(
    switched: AnswerHead | undefined,
    to: TunnelEnd,
    idleMs: number,
    bytes: PassedBytes | undefined,
  ): void;
  /**
   * Answers a CONNECT with 200 and gives up its connection. Undefined, and nothing done, if other streams
   * share it.
   */
  giveUp(): GivenUpConnection | undefined;
}

/**
 * What became of a request whose connection failed:
 * - `unsent`: nothing of it has left this machine;
 * - `unprocessed`: the upstream says so (RFC 9113 §8.7), and had not answered;
 * - `unanswered`: the connection had been idle, and most likely closed before the request came;
 * - `lost`: the upstream may have acted on it.
 */
export type Delivery = 'unsent' | 'unprocessed' | 'unanswered' | 'lost';

export interface OutgoingRequest {
  readonly from: IncomingRequest;
  readonly target: string;
  /** Host or `:authority`. */
  readonly authority: string;
  /** The value to inject, if any. */
  readonly authorization: string | undefined;
  /** Passes the client's own Authorization fields, and injects none. */
  readonly keepClientAuthorization: boolean;
  /** Identifies this proxy to the loop guard. */
  readonly instanceId: string;
  /** Protocols to offer in Upgrade, if any. */
  readonly upgrade: string | undefined;
  /** Whether `data` and `end` follow. */
  readonly hasBody: boolean;
}

/** One request to an upstream and its answer. Lent by `UpstreamStreams`. */
export interface UpstreamStream {
  /** Certain once `ready`. */
  readonly protocol: Protocol;
  readonly ready: boolean;
  /** Whether the system has taken all that was written. */
  readonly allTaken: boolean;
  /** Octets of the request that the system has not taken, and of an answer on hold. */
  readonly heldBytes: number;
  /** Present if the connection carries no other stream. */
  readonly ownSocket?: Socket | undefined;
  /** For CONNECT and after `switched`. */
  readonly tunnelEnd: TunnelEnd;
  /**
   * Before `send`: the request authenticates the connection (RFC 4559), which becomes its user's.
   * @throws {SidecarError} `authorization_needs_http1` if others share the connection.
   */
  tie(): void;
  /**
   * Writes the head, or the whole request without a body; it leaves with the next flush.
   * @param nowMs on the monotonic clock: from then on the answer is due.
   * @throws {SidecarError} `internal` if anything in it could end a line.
   */
  send(request: OutgoingRequest, nowMs: number): void;
  /** The slice is copied by the time this returns. */
  data(slice: Buffer): void;
  /** The request has been written whole: the answer is due. */
  end(trailers: Fields, nowMs: number): void;
  /** Says whether the upstream keeps up. If not, `upstreamReady` is called once it does. */
  flush(): boolean;
  /** Bytes have moved, or there was room for more. */
  touch(): void;
  /** Reads no more of the answer until `resume`: the app has to catch up. */
  pause(): void;
  resume(): void;
  /** Called during `answered`: passes nothing on until `proceed`. */
  hold(): void;
  proceed(): void;
  /**
   * Releases the user, and cuts the request.
   * @param how with `drain`, the rest of a held answer may be read out instead.
   */
  cancel(how?: { readonly drain: boolean }): void;
  /** Takes back the stream, unused. */
  release(): void;
}

export interface UpstreamStreams {
  /** The version for requests that came by HTTP/2; undefined until the upstream was asked. */
  readonly speaks: Protocol | undefined;
  /**
   * A stream of an open or a new connection. If it is not ready, it calls `user.connected` once it is.
   * @param request its version and needs decide by which version it may leave.
   * @param trustMs a connection idle for at least this long is first checked to be open.
   */
  acquire(request: IncomingRequest, user: UpstreamUser, trustMs: number): UpstreamStream;
  /** A stream of a new connection. */
  acquireNew(request: IncomingRequest, user: UpstreamUser): UpstreamStream;
  /**
   * A stream for a request after REFUSED_STREAM: on another connection, a new one or, failing these, the
   * same. It is not ready, and calls `user.connected` once it is.
   */
  acquireAgain(request: IncomingRequest, user: UpstreamUser): UpstreamStream;
  /** For CONNECT: becomes a tunnel end once it is open. */
  acquireTunnel(user: UpstreamUser): UpstreamStream;
  /** Makes the user's next request start on a new connection. */
  discardIdle(user: UpstreamUser): void;
  /** Each connection closes once its requests have ended. */
  retire(): void;
  /** Closes every connection at once. */
  close(): void;
}

/** Sends a request on a stream. Called until the answer has ended or failed, or the user abandons it. */
export interface UpstreamUser {
  /** Shares no HTTP/2 connection with other callers; absent if callers are not told apart. */
  readonly caller?: string | undefined;
  /** Owns a connection that it authenticates; absent if it could be nobody's alone. */
  readonly owner?: ConnectionOwner | undefined;
  /**
   * The request may be sent.
   * @param instead replaces the acquired stream if the upstream has chosen another HTTP version.
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

/** Holds a connection without a request, so that no answer can come. */
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

/** Waits for the next request of its owner. */
interface OwnedConnection {
  cancel(): void;
}

/**
 * Owns connections on which the upstream attributes everything to one user (RFC 4559): one caller on one
 * connection of the app. They carry no requests of others, and end with their owner.
 */
export class ConnectionOwner {
  /** As the gateway knows it; undefined if callers are not told apart. */
  readonly caller: string | undefined;
  readonly #waiting: OwnedConnection[] = [];
  #gone = false;

  constructor(caller: string | undefined) {
    this.caller = caller;
  }

  /** Nothing more will be asked. */
  get gone(): boolean {
    return this.#gone;
  }

  /** Whether any of its connections carries no request. */
  get hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** Without a request, the connection ends with its owner. */
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
