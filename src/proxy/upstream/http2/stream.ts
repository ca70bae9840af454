import { type ProxyErrorCode, SidecarError } from '../../../errors.ts';
import type { Fields } from '../../http/fields.ts';
import { isGrpcCall } from '../../http/grpc-call.ts';
import { permittedMetadata, permittedTrailers } from '../../http/trailer-fields.ts';
import type { AnswerSection } from '../../http2/answer-section.ts';
import { ErrorCode } from '../../http2/error-code.ts';
import type { Broken } from '../../http2/stream-handler.ts';
import type { AnswerBody, AnswerHead, IncomingRequest } from '../../streams/message.ts';
import type {
  OutgoingRequest,
  RequestFate,
  UpstreamStream,
  UpstreamUser,
} from '../../streams/upstream-stream.ts';
import type { TunnelEnd } from '../../tunnel/socket-side.ts';
import type { UpstreamFailures } from '../failures.ts';
import type { CarriedStream } from './carried-stream.ts';
import type { Http2Connection, WireStream } from './connection.ts';
import { requestFields, trailerFields } from './request-fields.ts';

export interface Http2StreamOptions {
  readonly scheme: 'http' | 'https';
  readonly failures: UpstreamFailures;
  /** Bounds on the answer, in ms. */
  readonly timeouts: { readonly responseMs: number; readonly idleMs: number };
  /** Called when one that waits for a connection is not wanted any more. */
  onAbandoned(stream: Http2UpstreamStream): void;
}

type Failure = { readonly error: SidecarError<ProxyErrorCode>; readonly fate: RequestFate };

/** What has come since the user asked to hold. */
interface Held {
  readonly pieces: Buffer[];
  end: { readonly trailers: Fields } | Failure | undefined;
}

/** A request is being sent, or its answer read. */
interface Busy {
  readonly kind: 'busy';
  readonly connection: Http2Connection;
  readonly wire: WireStream;
  /** Whether the connection had brought an answer before. */
  readonly reused: boolean;
  readonly isHead: boolean;
  /** Octets of the body still to come, where nothing can follow the last one. */
  remaining: number | undefined;
  /** Of the body, what the windows or the socket did not take yet. */
  readonly waiting: Buffer[];
  /** What follows the body, once that is known. */
  ending: readonly string[] | undefined;
  /** Whether `upstreamReady` is due. */
  behind: boolean;
  requestWhole: boolean;
  /** Whether the system has taken any of it. */
  left: boolean;
  anyAnswer: boolean;
  answered: boolean;
  paused: boolean;
  /** Octets of the answer that the window has not been given back for. */
  unreturned: number;
  held: Held | undefined;
}

type State =
  /** For a connection, or for room on one. */
  | { readonly kind: 'waiting' }
  /** The request may be sent. */
  | { readonly kind: 'lent'; readonly connection: Http2Connection }
  | Busy
  | { readonly kind: 'over' };

const WAITING: State = { kind: 'waiting' };
const OVER: State = { kind: 'over' };
const NO_TRAILERS: Fields = [];
const NO_OPTIONS: readonly string[] = [];

/** One request on an HTTP/2 connection that others share, and the answer to it. */
export class Http2UpstreamStream implements UpstreamStream, CarriedStream {
  readonly protocol = 'h2';
  readonly user: UpstreamUser;
  readonly request: IncomingRequest;
  dueAtMs = Number.POSITIVE_INFINITY;
  readonly #options: Http2StreamOptions;
  #state: State = WAITING;

  constructor(user: UpstreamUser, request: IncomingRequest, options: Http2StreamOptions) {
    this.user = user;
    this.request = request;
    this.#options = options;
  }

  get ready(): boolean {
    return this.#state.kind === 'lent';
  }

  get allTaken(): boolean {
    const state = this.#state;
    return state.kind !== 'busy' || (state.waiting.length === 0 && state.connection.allTaken);
  }

  get tunnelEnd(): TunnelEnd {
    throw new SidecarError('internal', 'a stream of an HTTP/2 connection was to become a tunnel');
  }

  /** Ends the wait. */
  lend(connection: Http2Connection): void {
    connection.lend(this);
    this.#state = { kind: 'lent', connection };
  }

  /** Another stream takes its place. */
  replaced(): void {
    this.#state = OVER;
  }

  /** @throws {SidecarError} as in `requestFields`; `internal` when it was not lent. */
  send(request: OutgoingRequest, nowMs: number): void {
    const lent = this.#state;
    if (lent.kind !== 'lent')
      throw new SidecarError('internal', `a request was begun on a stream that is ${lent.kind}`);
    const { connection } = lent;
    const { from, hasBody } = request;
    const isHead = from.method === 'HEAD';
    const fields = requestFields(request, this.#options.scheme);
    const wire = connection.request(this, fields, isHead ? 'head' : 'ordinary', !hasBody);
    if (wire === undefined) throw new SidecarError('internal', 'a stream was lent that may not be opened');
    this.#state = {
      kind: 'busy',
      connection,
      wire,
      reused: connection.reused,
      isHead,
      // Over HTTP/1.1 a body of a known length has no trailers.
      remaining: from.protocol === 'http1' ? from.contentLength : undefined,
      waiting: [],
      ending: undefined,
      behind: false,
      requestWhole: false,
      left: false,
      anyAnswer: false,
      answered: false,
      paused: false,
      unreturned: 0,
      held: undefined,
    };
    if (!hasBody) this.#requestSent(this.#state, nowMs);
  }

  data(slice: Buffer): void {
    const busy = this.#state;
    if (busy.kind !== 'busy') return;
    let rest = slice;
    while (rest.length > 0) {
      const sent = busy.waiting.length > 0 ? 0 : this.#sendData(busy, rest);
      if (sent === 0) {
        this.#keep(busy, rest);
        return;
      }
      rest = rest.subarray(sent);
    }
  }

  end(trailers: Fields, nowMs: number): void {
    const busy = this.#state;
    if (busy.kind !== 'busy') return;
    busy.ending = trailerFields(trailers);
    if (busy.waiting.length === 0) this.#endRequest(busy, nowMs);
  }

  flush(): boolean {
    const busy = this.#state;
    if (busy.kind !== 'busy') return true;
    busy.connection.flushSoon();
    busy.behind = busy.waiting.length > 0 || !busy.connection.takesMore;
    if (busy.behind) busy.connection.wait(this);
    return !busy.behind;
  }

  touch(): void {
    const busy = this.#state;
    if (busy.kind === 'busy') this.#touch(busy, busy.connection.nowMs());
  }

  /** The window is not given back until `resume`: the upstream may send what it still has leave to, and no more. */
  pause(): void {
    if (this.#state.kind === 'busy') this.#state.paused = true;
  }

  resume(): void {
    const busy = this.#state;
    if (busy.kind !== 'busy' || busy.held !== undefined) return;
    busy.paused = false;
    this.touch();
    this.#giveBack(busy);
  }

  hold(): void {
    const busy = this.#state;
    if (busy.kind !== 'busy') return;
    busy.held = { pieces: [], end: undefined };
    this.dueAtMs = Number.POSITIVE_INFINITY;
  }

  proceed(): void {
    const busy = this.#state;
    if (busy.kind !== 'busy' || busy.held === undefined) return;
    const { pieces, end } = busy.held;
    busy.held = undefined;
    this.touch();
    for (const piece of pieces) if (this.#state === busy) this.user.answerData(piece);
    if (this.#state !== busy) return;
    if (end === undefined) this.#pieceEnded(busy);
    else if ('error' in end) this.#fail(busy, end);
    else this.#endAnswer(busy, end.trailers);
  }

  discard(): void {
    this.abandon();
  }

  abandon(): void {
    const state = this.#state;
    this.#state = OVER;
    if (state.kind === 'waiting') this.#options.onAbandoned(this);
    else if (state.kind === 'lent') state.connection.release(this);
    else if (state.kind === 'busy') this.#leave(state);
  }

  giveBack(): void {
    this.abandon();
  }

  hasLeft(): void {
    if (this.#state.kind === 'busy') this.#state.left = true;
  }

  answerCame(answer: AnswerSection, endStream: boolean): void {
    const busy = this.#state;
    if (busy.kind !== 'busy') return;
    busy.anyAnswer = true;
    const { status, fields } = answer;
    const head: AnswerHead = { status, reason: '', fields, connectionOptions: NO_OPTIONS };
    if (answer.kind === 'interim') {
      this.user.informed(head);
      return;
    }
    busy.answered = true;
    this.user.answered(head, this.#bodyOf(answer, busy.isHead, endStream));
    if (endStream) this.#answerWhole(NO_TRAILERS);
  }

  dataCame(data: Buffer, endStream: boolean): void {
    const busy = this.#state;
    if (busy.kind !== 'busy') return;
    if (data.length > 0) {
      busy.unreturned += data.length;
      busy.connection.came(data.length);
      if (busy.held === undefined) this.user.answerData(data);
      else busy.held.pieces.push(Buffer.from(data));
    }
    if (endStream) this.#answerWhole(NO_TRAILERS);
  }

  trailersCame(fields: string[]): void {
    this.#answerWhole(isGrpcCall(this.request) ? permittedMetadata(fields) : permittedTrailers(fields));
  }

  brokenOff(how: Broken): void {
    const { failures } = this.#options;
    switch (how.kind) {
      case 'reset':
        this.#failed({
          error: failures.reset(how.code),
          fate: how.code === ErrorCode.REFUSED_STREAM ? 'unprocessed' : 'lost',
        });
        break;
      case 'fault':
        this.#failed({ error: failures.http2(how.reason, true), fate: 'lost' });
        break;
      case 'unprocessed':
        this.#failed({ error: failures.goneAway(ErrorCode.NO_ERROR), fate: 'unprocessed' });
        break;
    }
  }

  connectionFailed(error: SidecarError<ProxyErrorCode>, byPeer: boolean): void {
    this.#failed({ error, fate: this.#fateOf(byPeer) });
  }

  /** No connection could be made. */
  notConnected(error: SidecarError<ProxyErrorCode>): void {
    if (this.#state.kind !== 'waiting') return;
    this.#state = OVER;
    this.user.upstreamFailed(error, 'lost');
  }

  pieceEnded(nowMs: number): void {
    const busy = this.#state;
    if (busy.kind !== 'busy' || busy.held !== undefined) return;
    this.#touch(busy, nowMs);
    this.#pieceEnded(busy);
  }

  sendWaiting(): 'stuck' | 'more' | 'done' {
    const busy = this.#state;
    if (busy.kind !== 'busy') return 'done';
    const { waiting } = busy;
    const [piece] = waiting;
    if (piece !== undefined) {
      const sent = this.#sendData(busy, piece);
      if (sent === 0) return 'stuck';
      if (sent < piece.length) waiting[0] = piece.subarray(sent);
      else waiting.shift();
      this.touch();
      busy.connection.flushSoon();
      if (waiting.length > 0) return 'more';
    }
    if (busy.ending !== undefined && !busy.requestWhole) this.#endRequest(busy, busy.connection.nowMs());
    if (busy.behind) {
      busy.behind = false;
      this.touch();
      this.user.upstreamReady();
    }
    return 'done';
  }

  tooLate(): void {
    const busy = this.#state;
    if (busy.kind !== 'busy') return;
    this.dueAtMs = Number.POSITIVE_INFINITY;
    if (!busy.requestWhole || busy.answered) {
      this.user.stalled();
      return;
    }
    const { failures, timeouts } = this.#options;
    this.#fail(busy, { error: failures.tooLate('answer', timeouts.responseMs), fate: 'lost' });
  }

  /** Keeps what cannot be sent now. It is no more than the app sends before it heeds `flush`. */
  #keep(busy: Busy, slice: Buffer): void {
    busy.waiting.push(Buffer.from(slice));
    busy.connection.wait(this);
  }

  #sendData(busy: Busy, bytes: Buffer): number {
    const last = busy.remaining !== undefined && busy.remaining <= bytes.length;
    const sent = busy.connection.send(busy.wire, bytes, last);
    if (busy.remaining !== undefined) busy.remaining -= sent;
    return sent;
  }

  #endRequest(busy: Busy, nowMs: number): void {
    const { wire, connection } = busy;
    const ended =
      wire.state.kind === 'closed' || (wire.state.kind === 'half_closed' && wire.state.endedBy === 'local');
    if (!ended) connection.end(wire, busy.ending ?? []);
    connection.flushSoon();
    this.#requestSent(busy, nowMs);
  }

  #requestSent(busy: Busy, nowMs: number): void {
    busy.requestWhole = true;
    const { responseMs, idleMs } = this.#options.timeouts;
    if (busy.held === undefined) this.#due(busy, nowMs + (busy.answered ? idleMs : responseMs));
  }

  #touch(busy: Busy, nowMs: number): void {
    if (busy.requestWhole && !busy.answered) return;
    this.#due(busy, nowMs + this.#options.timeouts.idleMs);
  }

  #due(busy: Busy, atMs: number): void {
    this.dueAtMs = atMs;
    busy.connection.due(atMs);
  }

  #pieceEnded(busy: Busy): void {
    this.user.flushAnswer();
    if (!busy.paused && this.#state === busy) this.#giveBack(busy);
  }

  #giveBack(busy: Busy): void {
    const { unreturned } = busy;
    if (unreturned === 0) return;
    busy.unreturned = 0;
    busy.connection.passedOn(busy.wire, unreturned);
  }

  #answerWhole(trailers: Fields): void {
    const busy = this.#state;
    if (busy.kind !== 'busy') return;
    if (busy.held === undefined) this.#endAnswer(busy, trailers);
    else busy.held.end = { trailers };
  }

  #endAnswer(busy: Busy, trailers: Fields): void {
    this.#state = OVER;
    this.#leave(busy);
    this.user.answerEnded(trailers);
  }

  #failed(failure: Failure): void {
    const state = this.#state;
    if (state.kind === 'busy') {
      if (state.held === undefined) this.#fail(state, failure);
      else state.held.end ??= failure;
    } else if (state.kind === 'lent') {
      this.#state = OVER;
      state.connection.release(this);
      this.user.upstreamFailed(failure.error, 'unsent');
    }
  }

  #fail(busy: Busy, { error, fate }: Failure): void {
    this.#state = OVER;
    this.#leave(busy);
    this.user.upstreamFailed(error, fate);
  }

  /** Leaves the connection to the others; what is not over on the wire is reset. */
  #leave(busy: Busy): void {
    const { connection, wire } = busy;
    this.dueAtMs = Number.POSITIVE_INFINITY;
    connection.reset(wire);
    this.#giveBack(busy);
    connection.release(this);
  }

  /** What follows the head for the app, which over HTTP/1.1 has to be told where it ends, even at once. */
  #bodyOf({ status, contentLength }: AnswerSection, isHead: boolean, endStream: boolean): AnswerBody {
    if (isHead || status === 204 || status === 304) return 'none';
    if (endStream && this.request.protocol === 'h2') return 'none';
    return contentLength === undefined ? 'open' : 'length';
  }

  #fateOf(byPeer: boolean): RequestFate {
    const state = this.#state;
    if (state.kind !== 'busy') return 'unsent';
    if (!byPeer) return 'lost';
    if (!state.left) return 'unsent';
    return state.reused && !state.anyAnswer ? 'unanswered' : 'lost';
  }
}
