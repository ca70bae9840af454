/** The two ports of a transaction: the app's stream and the upstream's. */

import type { Socket } from 'node:net';
import { type ProxyErrorCode, SidecarError } from '../../platform/errors.ts';
import type { Fields } from '../http/fields.ts';
import type { Protocol } from '../http/messages.ts';
import type { TargetForm } from '../http/syntax.ts';
import type { PassedBytes, TunnelEnd } from '../tunnel/tunnel.ts';

export interface FieldSection {
  readonly fields: Fields;
  /** What Connection names, in lower case (RFC 9110 §7.6.1); HTTP/2 has none. */
  readonly connectionOptions: readonly string[];
  /** Fields that no HPACK table may hold (RFC 7541 §7.1.3); HTTP/2 only. */
  readonly neverIndexed?: readonly string[];
}

export interface IncomingRequest extends FieldSection {
  readonly protocol: Protocol;
  readonly method: string;
  readonly target: string;
  readonly targetForm: TargetForm;
  /** Host or `:authority`, as it came. */
  readonly host: string | undefined;
  /** Octets of the body, as declared. */
  readonly contentLength: number | undefined;
}

export interface ResponseHead extends FieldSection {
  readonly status: number;
  /** May be empty; HTTP/2 has none. */
  readonly reason: string;
}

/** `length` is what Content-Length says, `open` is unknown. */
export type ResponseBody = 'none' | 'length' | 'open';

export interface LocalReply {
  readonly status: number;
  readonly reason: string;
  readonly fields: Fields;
  /** ASCII; not sent in answer to HEAD. */
  readonly body: string;
  /** The connection can carry no further request. */
  readonly closes: boolean;
}

export interface ConnectionSuccessor {
  readonly busy: boolean;
  closeIdle(): void;
  drain(): void;
}

/** After a CONNECT it speaks HTTP again, inside TLS that ends here. */
export interface DetachedConnection extends TunnelEnd {
  handOff(successor: ConnectionSuccessor): void;
  /** Call it when a request of the connection is settled. */
  onFree(): void;
}

/**
 * One request of an app and the way back. Whoever made the transaction tells it of the body, of the answer's
 * end, and of an app that keeps up again or has left. A stream is useless after `end`, `answer`, `cut` or
 * `becomeTunnel`.
 */
export interface DownstreamStream {
  readonly requestComplete: boolean;
  /** The client sends the body only after 100 (RFC 9110 §10.1.1). */
  readonly awaitsContinue: boolean;
  /** What Upgrade names (RFC 9110 §7.8). */
  readonly offeredProtocols: string | undefined;
  /** Owns upstream connections; undefined if other streams share the app's connection. */
  ownerFor(caller: string | undefined): ConnectionOwner | undefined;
  /** Reaches clients that understand it (RFC 9110 §15.2); 100 only if asked for. */
  sendInterim(head: ResponseHead): void;
  /** The head leaves with the next flush. */
  respond(head: ResponseHead, body: ResponseBody): void;
  /** The slice is copied or sent when this returns. */
  data(slice: Buffer): void;
  /** If false, the transaction is told once the app keeps up. */
  flush(): boolean;
  /** @param timeoutMs how long the app may take to read what the system has not accepted yet. */
  end(trailers: Fields, timeoutMs: number): void;
  /** The rest of the request is ignored. */
  sendLocalReply(own: LocalReply, timeoutMs: number): void;
  /** The app notices that the answer is cut. @param why is told to it if possible. */
  cut(why: SidecarError<ProxyErrorCode>): void;
  /** Takes no more of the request until `resume`. */
  pause(): void;
  /** Does nothing on a stream that has ended. */
  resume(): void;
  /**
   * @param switched the upstream's 101; undefined in answer to a CONNECT.
   * @param idleMs after so long without a byte in either direction, the tunnel is cut.
   * @param bytes counts what passes.
   */
  becomeTunnel(
    switched: ResponseHead | undefined,
    to: TunnelEnd,
    idleMs: number,
    bytes: PassedBytes | undefined,
  ): void;
  /** Answers a CONNECT with 200. Does nothing and returns undefined if other streams share its connection. */
  detach(): DetachedConnection | undefined;
}

/**
 * What became of a request whose connection failed:
 * - `unsent`: nothing has left this machine;
 * - `unprocessed`: the upstream says so (RFC 9113 §8.7), and had not answered;
 * - `unanswered`: most likely the idle connection had closed before;
 * - `lost`: the upstream may have acted on it.
 */
export type Delivery = 'unsent' | 'unprocessed' | 'unanswered' | 'lost';

export interface OutgoingRequest {
  readonly from: IncomingRequest;
  readonly target: string;
  /** Host or `:authority`. */
  readonly authority: string;
  /** The value to inject. */
  readonly authorization: string | undefined;
  /** For the field `DPoP`, in the place of the app's own. No other request has the same. */
  readonly proof?: string | undefined;
  /** Passes the client's own Authorization, and injects none. */
  readonly keepClientAuthorization: boolean;
  /** Serves the loop guard. */
  readonly instanceId: string;
  /** Protocols to offer in Upgrade. */
  readonly upgrade: string | undefined;
  /** Whether `data` and `end` follow. */
  readonly hasBody: boolean;
}

/** One request and its answer. `UpstreamStreams` lends it. */
export interface UpstreamStream {
  /** Certain once `ready`. */
  readonly protocol: Protocol;
  readonly ready: boolean;
  /** Whether the system has taken all that was written. */
  readonly drained: boolean;
  /** Request octets that the system has not taken, and answer octets on hold. */
  readonly heldBytes: number;
  /** Present if the connection has no other stream. */
  readonly ownSocket?: Socket | undefined;
  /** Used for CONNECT, and after `switched`. */
  readonly tunnelEnd: TunnelEnd;
  /**
   * Call it before a request that authenticates the connection (RFC 4559), which becomes its user's.
   * @throws {SidecarError} `authorization_needs_http1` if others share the connection.
   */
  tie(): void;
  /**
   * The head, or the whole request without a body, leaves with the next flush.
   * @param nowMs on the monotonic clock: then the answer is due.
   * @throws {SidecarError} `internal` if anything could end a line.
   */
  send(request: OutgoingRequest, nowMs: number): void;
  /** The slice is copied when this returns. */
  data(slice: Buffer): void;
  /** The answer is due from now on. */
  end(trailers: Fields, nowMs: number): void;
  /** If false, `onDrain` is called once the upstream keeps up. */
  flush(): boolean;
  /** Bytes have moved, or there was room for more. */
  touch(): void;
  /** Reads no more of the answer until `resume`. */
  pause(): void;
  resume(): void;
  /** Called during `onResponse`; passes nothing on until `releaseResponse`. */
  holdResponse(): void;
  releaseResponse(): void;
  /** @param how with `drain`, the rest of a held answer may be read. */
  cancel(how?: { readonly drain: boolean }): void;
  /** Gives the stream back unused. */
  release(): void;
}

export interface UpstreamStreams {
  /** The version for requests that came by HTTP/2; undefined until the upstream was asked. */
  readonly negotiatedProtocol: Protocol | undefined;
  /**
   * Unless the stream is ready, `user.connected` is called once it is.
   * @param request decides by which version it may leave.
   * @param maxIdleMs a connection idle for at least this long is checked first.
   */
  acquire(request: IncomingRequest, user: UpstreamUser, maxIdleMs: number): UpstreamStream;
  /** Uses a new connection. */
  acquireFresh(request: IncomingRequest, user: UpstreamUser): UpstreamStream;
  /**
   * After REFUSED_STREAM; uses another connection, else a new one, else the same. `user.connected` is called
   * once the stream is ready.
   */
  acquireForRetry(request: IncomingRequest, user: UpstreamUser): UpstreamStream;
  /** Serves CONNECT. */
  acquireTunnel(user: UpstreamUser): UpstreamStream;
  /** The user's next request starts on a new connection. */
  discardIdle(user: UpstreamUser): void;
  /** Connections close once their requests have ended. */
  drain(): void;
  close(): void;
}

/** Called until the answer has ended or failed, or the user abandons it. */
export interface UpstreamUser {
  /** Shares no HTTP/2 connection with others; absent if callers are not told apart. */
  readonly caller?: string | undefined;
  /** Owns connections that the user authenticates; absent if they could be nobody's alone. */
  readonly owner?: ConnectionOwner | undefined;
  /** @param instead replaces the acquired stream if the upstream has chosen another version. */
  onConnected(instead?: UpstreamStream): void;
  /** Never called with a 101. */
  onInterim(head: ResponseHead): void;
  onResponse(head: ResponseHead, body: ResponseBody): void;
  /** After a 101 take the connection over. @throws {SidecarError} if the user did not ask for it. */
  onSwitched(head: ResponseHead): void;
  onData(slice: Buffer): void;
  onEnd(trailers: Fields): void;
  /** All that came in one piece has been passed on. */
  onReadEnd(): void;
  /** There is room for more of the request. */
  onDrain(): void;
  /** Nothing has moved for as long as the route allows. */
  onStalled(): void;
  onError(error: SidecarError<ProxyErrorCode>, delivery: Delivery): void;
}

/** Holds a connection on which no answer can come. */
export class WithoutRequest implements UpstreamUser {
  onConnected(_instead?: UpstreamStream): void {}
  onInterim(): void {}
  onResponse(): void {}
  onSwitched(): void {}
  onData(): void {}
  onEnd(): void {}
  onReadEnd(): void {}
  onDrain(): void {}
  onStalled(): void {}
  onError(_error: SidecarError<ProxyErrorCode>, _delivery: Delivery): void {}
}

/** The upstream sent RST_STREAM (RFC 9113 §6.4). */
export class UpstreamReset extends SidecarError<'upstream_protocol_error'> {
  /** Apps that speak HTTP/2 may be told it. */
  readonly http2Code: number;

  constructor(message: string, http2Code: number) {
    super('upstream_protocol_error', message);
    this.http2Code = http2Code;
  }
}

interface OwnedConnection {
  cancel(): void;
}

/**
 * Owns connections that the upstream takes for one user's (RFC 4559): of one caller on one connection of the
 * app. They carry no other requests, and end with their owner.
 */
export class ConnectionOwner {
  /** Undefined if callers are not told apart. */
  readonly caller: string | undefined;
  readonly #waiting: OwnedConnection[] = [];
  #gone = false;

  constructor(caller: string | undefined) {
    this.caller = caller;
  }

  /** If so, nothing more will be asked. */
  get gone(): boolean {
    return this.#gone;
  }

  /** Whether a connection waits for a request. */
  get hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** The connection ends with its owner. */
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
