import { type ProxyErrorCode, SidecarError } from '../../../platform/errors.ts';
import { type Fields, lowerCaseNames, permittedMetadata, permittedTrailers } from '../../http/fields.ts';
import { isGrpcCall } from '../../http/messages.ts';
import type { StreamError } from '../../http2/connection-output.ts';
import { ErrorCode } from '../../http2/errors.ts';
import { sectionBytes } from '../../http2/fields.ts';
import type { ResponseSection } from '../../http2/messages.ts';
import type {
  Delivery,
  IncomingRequest,
  OutgoingRequest,
  ResponseBody,
  ResponseHead,
  UpstreamStream,
  UpstreamUser,
} from '../../streams/contract.ts';
import { isResponseDue, type StallTimeouts, stallTimeoutMs } from '../../streams/stall-timeouts.ts';
import type { TunnelEnd } from '../../tunnel/tunnel.ts';
import type { UpstreamFailures } from '../failures.ts';
import { CarriedRequest, type Failure, requestFields } from './carried-request.ts';
import type { Http2Connection } from './connection.ts';
import type { CarriedStream } from './connection-writer.ts';

export interface Http2StreamOptions {
  readonly scheme: 'http' | 'https';
  readonly failures: UpstreamFailures;
  readonly timeouts: StallTimeouts;
  /** Called if it is abandoned while it waits for a connection. */
  onAbandoned(stream: Http2UpstreamStream): void;
}

/** What a reset's code says of a request without an answer. */
const DELIVERY_BY_RESET: ReadonlyMap<number, Delivery> = new Map([
  [ErrorCode.REFUSED_STREAM, 'unprocessed'],
  [ErrorCode.ENHANCE_YOUR_CALM, 'unanswered'],
]);

type StreamState =
  /** Waits for a connection, or for room on one. */
  | { readonly kind: 'waiting' }
  | { readonly kind: 'lent'; readonly connection: Http2Connection }
  | CarriedRequest
  | { readonly kind: 'over' };

const WAITING: StreamState = { kind: 'waiting' };
const OVER: StreamState = { kind: 'over' };
const NO_TRAILERS: Fields = [];
const NO_OPTIONS: readonly string[] = [];

export class Http2UpstreamStream implements UpstreamStream, CarriedStream {
  readonly protocol = 'h2';
  place = 0;
  readonly user: UpstreamUser;
  readonly request: IncomingRequest;
  readonly #options: Http2StreamOptions;
  #state: StreamState = WAITING;

  constructor(user: UpstreamUser, request: IncomingRequest, options: Http2StreamOptions) {
    this.user = user;
    this.request = request;
    this.#options = options;
  }

  get dueAtMs(): number {
    return this.#state.kind === 'busy' ? this.#state.dueAtMs : Number.POSITIVE_INFINITY;
  }

  get ready(): boolean {
    return this.#state.kind === 'lent';
  }

  get drained(): boolean {
    const state = this.#state;
    return state.kind !== 'busy' || state.keepsUp;
  }

  get heldBytes(): number {
    const busy = this.#state;
    return busy.kind === 'busy' ? busy.sending.heldBytes + (busy.held?.data.length ?? 0) : 0;
  }

  get tunnelEnd(): TunnelEnd {
    throw new SidecarError('internal', 'a stream of an HTTP/2 connection was to become a tunnel');
  }

  tie(): void {
    throw this.#options.failures.sharedByOthers();
  }

  lend(connection: Http2Connection): void {
    connection.lend(this);
    this.#state = { kind: 'lent', connection };
  }

  replaced(): void {
    this.#state = OVER;
  }

  /**
   * @throws {SidecarError} what `requestFields` throws; `headers_too_large`; `internal` if it was not lent.
   */
  send(request: OutgoingRequest, nowMs: number): void {
    const lent = this.#state;
    if (lent.kind !== 'lent')
      throw new SidecarError('internal', `a request was begun on a stream that is ${lent.kind}`);
    const { connection } = lent;
    const { from, hasBody } = request;
    const isHead = from.method === 'HEAD';
    const fields = requestFields(request, this.#options.scheme);
    const tooLarge = this.#tooLarge('head', fields, connection);
    if (tooLarge !== undefined) throw tooLarge;
    const asked = isHead ? 'head' : 'ordinary';
    const wire = connection.outlet.request(this, fields, asked, !hasBody, from.neverIndexed);
    if (wire === undefined) throw new SidecarError('internal', 'a stream was lent that may not be opened');
    // Over HTTP/1.1 a body of a known length has no trailers.
    const bodyBytes = from.protocol === 'http1' ? from.contentLength : undefined;
    const busy = new CarriedRequest(this, connection, wire, isHead, bodyBytes, this.#options.timeouts);
    this.#state = busy;
    if (hasBody) return;
    busy.sending.whole = true;
    busy.requestSent(nowMs);
  }

  data(slice: Buffer): void {
    if (this.#state.kind === 'busy') this.#state.sending.data(slice);
  }

  end(trailers: Fields, nowMs: number): void {
    const busy = this.#state;
    if (busy.kind !== 'busy') return;
    const fields = lowerCaseNames(trailers);
    const tooLarge = this.#tooLarge('trailers', fields, busy.connection);
    if (tooLarge !== undefined) {
      this.#fail(busy, { error: tooLarge, delivery: 'lost' });
      return;
    }
    busy.sending.end(fields);
    if (busy.sending.finish()) busy.requestSent(nowMs);
  }

  flush(): boolean {
    return this.#state.kind !== 'busy' || this.#state.flush();
  }

  touch(): void {
    const busy = this.#state;
    if (busy.kind === 'busy') busy.touch(busy.connection.nowMs());
  }

  /** The upstream may fill the window, which is not given back until `resume`. */
  pause(): void {
    if (this.#state.kind === 'busy') this.#state.paused = true;
  }

  resume(): void {
    const busy = this.#state;
    if (busy.kind !== 'busy' || busy.held !== undefined) return;
    busy.paused = false;
    this.touch();
    busy.giveBack();
  }

  holdResponse(): void {
    if (this.#state.kind === 'busy') this.#state.holdResponse();
  }

  releaseResponse(): void {
    const busy = this.#state;
    if (busy.kind !== 'busy' || busy.held === undefined) return;
    const { data, end } = busy.held;
    busy.held = undefined;
    this.touch();
    for (const piece of data.pieces()) if (this.#state === busy) this.user.onData(piece);
    data.clear();
    if (this.#state !== busy) return;
    if (end === undefined) {
      this.#pieceEnded(busy);
      if (this.#state === busy && busy.sending.keepsUp) this.#tellReady(busy);
    } else if ('error' in end) this.#fail(busy, end);
    else this.#endResponse(busy, end.trailers);
  }

  cancel(): void {
    const state = this.#state;
    this.#state = OVER;
    if (state.kind === 'waiting') this.#options.onAbandoned(this);
    else if (state.kind === 'lent') state.connection.release(this);
    else if (state.kind === 'busy') state.leave();
  }

  release(): void {
    this.cancel();
  }

  hasLeft(): void {
    if (this.#state.kind === 'busy') this.#state.left = true;
  }

  answerCame(answer: ResponseSection, endStream: boolean, neverIndexed: readonly string[]): void {
    const busy = this.#state;
    if (busy.kind !== 'busy') return;
    busy.anyResponse = true;
    const { status, fields } = answer;
    const head: ResponseHead = { status, reason: '', fields, connectionOptions: NO_OPTIONS, neverIndexed };
    if (answer.kind === 'interim') {
      this.user.onInterim(head);
      return;
    }
    busy.answered = true;
    this.user.onResponse(head, this.#bodyOf(answer, busy.isHead, endStream));
    if (endStream) this.#responseComplete(NO_TRAILERS);
  }

  dataCame(data: Buffer, endStream: boolean): void {
    const busy = this.#state;
    if (busy.kind !== 'busy') return;
    if (data.length > 0) {
      busy.came(data.length);
      if (busy.held === undefined) this.user.onData(data);
      else busy.held.data.add(data);
    }
    if (endStream) this.#responseComplete(NO_TRAILERS);
  }

  trailersCame(fields: Fields): void {
    this.#responseComplete(isGrpcCall(this.request) ? permittedMetadata(fields) : permittedTrailers(fields));
  }

  brokenOff(how: StreamError): void {
    const { failures } = this.#options;
    switch (how.kind) {
      case 'reset':
        this.#failed({
          error: failures.reset(how.code),
          delivery: DELIVERY_BY_RESET.get(how.code) ?? 'lost',
        });
        break;
      case 'fault':
        this.#failed({ error: failures.http2(how.reason, true), delivery: 'lost' });
        break;
      case 'unprocessed':
        this.#failed({ error: failures.goneAway(ErrorCode.NO_ERROR), delivery: 'unprocessed' });
        break;
    }
  }

  connectionFailed(error: SidecarError<ProxyErrorCode>, byPeer: boolean): void {
    this.#failed({ error, delivery: this.#deliveryOf(byPeer) });
  }

  notConnected(error: SidecarError<ProxyErrorCode>): void {
    if (this.#state.kind !== 'waiting') return;
    this.#state = OVER;
    this.user.onError(error, 'lost');
  }

  pieceEnded(nowMs: number): void {
    const busy = this.#state;
    if (busy.kind !== 'busy' || busy.held !== undefined) return;
    busy.touch(nowMs);
    this.#pieceEnded(busy);
  }

  sendWaiting(): 'stuck' | 'more' | 'done' {
    const busy = this.#state;
    if (busy.kind !== 'busy') return 'done';
    const progress = busy.sending.sendOne();
    if (progress === 'stuck') return 'stuck';
    if (progress === 'sent') {
      this.touch();
      busy.connection.outlet.flushSoon();
      if (!busy.sending.keepsUp) return 'more';
    }
    if (busy.sending.finish()) busy.requestSent(busy.connection.nowMs());
    // During a hold the user may want no more of the app.
    if (busy.held === undefined) this.#tellReady(busy);
    return 'done';
  }

  tooLate(): void {
    const busy = this.#state;
    if (busy.kind !== 'busy') return;
    busy.dueAtMs = Number.POSITIVE_INFINITY;
    const { whole } = busy.sending;
    if (!isResponseDue(whole, busy.answered)) {
      this.user.onStalled();
      return;
    }
    const { failures, timeouts } = this.#options;
    const afterMs = stallTimeoutMs(timeouts, whole, busy.answered);
    this.#fail(busy, { error: failures.tooLate('answer', afterMs), delivery: 'lost' });
  }

  #tooLarge(
    what: 'head' | 'trailers',
    fields: readonly string[],
    { outlet: { mostSectionBytes } }: Http2Connection,
  ): SidecarError<ProxyErrorCode> | undefined {
    const bytes = mostSectionBytes === Number.POSITIVE_INFINITY ? 0 : sectionBytes(fields);
    if (bytes <= mostSectionBytes) return undefined;
    return this.#options.failures.sectionTooLarge(what, bytes, mostSectionBytes);
  }

  #tellReady(busy: CarriedRequest): void {
    if (!busy.needDrain) return;
    busy.needDrain = false;
    this.touch();
    this.user.onDrain();
  }

  #pieceEnded(busy: CarriedRequest): void {
    this.user.onReadEnd();
    if (!busy.paused && this.#state === busy) busy.giveBack();
  }

  #responseComplete(trailers: Fields): void {
    const busy = this.#state;
    if (busy.kind !== 'busy') return;
    if (busy.held === undefined) this.#endResponse(busy, trailers);
    else busy.held.end = { trailers };
  }

  #endResponse(busy: CarriedRequest, trailers: Fields): void {
    this.#state = OVER;
    busy.leave();
    this.user.onEnd(trailers);
  }

  #failed(failure: Failure): void {
    const state = this.#state;
    if (state.kind === 'busy') {
      // A later success must not mask an internal error.
      if (state.held === undefined || failure.error.code === 'internal') this.#fail(state, failure);
      else state.endHeld(state.held, failure);
    } else if (state.kind === 'lent') {
      this.#state = OVER;
      state.connection.release(this);
      this.user.onError(failure.error, 'unsent');
    }
  }

  #fail(busy: CarriedRequest, { error, delivery }: Failure): void {
    this.#state = OVER;
    busy.leave();
    // It has looked at the request, whatever it says.
    this.user.onError(error, busy.anyResponse ? 'lost' : delivery);
  }

  /** Over HTTP/1.1 an app must be told where the body ends, even if at once. */
  #bodyOf({ status, contentLength }: ResponseSection, isHead: boolean, endStream: boolean): ResponseBody {
    if (isHead || status === 204 || status === 304) return 'none';
    if (endStream && this.request.protocol === 'h2') return 'none';
    return contentLength === undefined ? 'open' : 'length';
  }

  #deliveryOf(byPeer: boolean): Delivery {
    const state = this.#state;
    if (state.kind !== 'busy') return 'unsent';
    if (!byPeer) return 'lost';
    if (!state.left) return 'unsent';
    return state.reused && !state.anyResponse ? 'unanswered' : 'lost';
  }
}
