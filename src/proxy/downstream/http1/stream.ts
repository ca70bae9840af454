import { expectsContinue, type Fields, fieldValues } from '../../http/fields.ts';
import { type BodyDecoder, bodyDecoder } from '../../http1/body-decoder.ts';
import type { RequestHead } from '../../http1/heads.ts';
import { CHUNK_END, chunkStart, lastChunk, serializeResponseHead } from '../../http1/serialize.ts';
import type { CoalescingWriter } from '../../io/coalescing-writer.ts';
import type {
  ConnectionOwner,
  ConnectionSuccessor,
  DetachedConnection,
  DownstreamStream,
  LocalReply,
  ResponseBody,
  ResponseHead,
} from '../../streams/contract.ts';
import { informationFields, offeredProtocols, responseFields } from '../../streams/header-rules.ts';
import type { ListenerContext } from '../../transaction/listener-context.ts';
import { localReplyMessage } from '../../transaction/local-reply.ts';
import { Transaction } from '../../transaction/transaction.ts';
import { type PassedBytes, runTunnel, SocketSide, type TunnelEnd } from '../../tunnel/tunnel.ts';

/** A refused request's body is read only up to this, to keep the connection. */
const WORTH_DROPPING_BYTES = 64 * 1024;

const CONNECTED = serializeResponseHead(200, 'Connection Established', []);

/** RFC 9112 §6.3. */
type ResponseFraming = 'none' | 'length' | 'chunked' | 'close';

export interface Http1Carrier extends TunnelEnd {
  readonly writer: CoalescingWriter;
  readonly endsWithResponse: boolean;
  ownerFor(caller: string | undefined): ConnectionOwner;
  /** Reads no further until `resume`. */
  pause(): void;
  resume(stream: Http1DownstreamStream): void;
  /**
   * @param last whether the connection ends with it.
   * @param timeoutMs for the app to read what the system has not taken yet.
   */
  endResponse(stream: Http1DownstreamStream, last: boolean, timeoutMs: number): void;
  /**
   * Cuts an answer, so that the app knows it is incomplete.
   * @param byReset if a proper close would mean that it is complete.
   */
  cut(byReset: boolean): void;
  handOff(successor: ConnectionSuccessor): void;
  onFree(): void;
}

export class Http1DownstreamStream implements DownstreamStream {
  readonly kind = 'serving';
  readonly transaction: Transaction;
  /** Undefined once it has been read, or cannot be. */
  body: BodyDecoder | undefined;
  /** What becomes of the connection, known once the answer is on its way out. */
  afterResponse: 'unknown' | 'kept' | 'closed' = 'unknown';
  requestComplete: boolean;
  readonly #carrier: Http1Carrier;
  readonly #context: ListenerContext;
  readonly #head: RequestHead;
  #framing: ResponseFraming = 'none';
  #continued = false;
  #last = false;

  constructor(carrier: Http1Carrier, context: ListenerContext, head: RequestHead, nowMs: number) {
    this.#carrier = carrier;
    this.#context = context;
    this.#head = head;
    this.body = bodyOf(head, context);
    this.requestComplete = this.body === undefined;
    this.transaction = new Transaction(this, context, head, nowMs);
  }

  get isClientsLast(): boolean {
    return this.requestComplete && !this.#head.persistent;
  }

  get awaitsContinue(): boolean {
    if (this.requestComplete || this.#continued || this.#head.minorVersion === 0) return false;
    return expectsContinue(this.#head.fields);
  }

  get offeredProtocols(): string | undefined {
    return this.#head.minorVersion === 1 ? offeredProtocols(this.#head) : undefined;
  }

  ownerFor(caller: string | undefined): ConnectionOwner {
    return this.#carrier.ownerFor(caller);
  }

  endBody(trailers: Fields): void {
    this.body = undefined;
    this.requestComplete = true;
    this.transaction.endBody(trailers);
  }

  sendInterim(head: ResponseHead): void {
    if (this.#head.minorVersion === 0) return;
    if (head.status === 100) {
      if (!this.awaitsContinue) return;
      this.#continued = true;
    }
    const { writer } = this.#carrier;
    writer.text(serializeResponseHead(head.status, head.reason, informationFields(head)));
    writer.flush();
  }

  respond(head: ResponseHead, body: ResponseBody): void {
    const { status } = head;
    this.#framing = this.#framingFor(status, body);
    const fields = responseFields(head, { status, body: this.#framing === 'chunked' ? 'chunked' : 'plain' });
    // Without 100 the client may send the body or not (RFC 9110 §10.1.1).
    this.#last = this.#mustClose() || this.#framing === 'close' || this.awaitsContinue;
    const section = this.#last ? [...fields, 'connection', 'close'] : fields;
    this.#carrier.writer.text(serializeResponseHead(status, head.reason, section));
  }

  data(slice: Buffer): void {
    const { writer } = this.#carrier;
    switch (this.#framing) {
      case 'none':
        break;
      case 'chunked':
        writer.text(chunkStart(slice.length));
        writer.bytes(slice);
        writer.text(CHUNK_END);
        break;
      default:
        writer.bytes(slice);
    }
  }

  flush(): boolean {
    return this.#carrier.writer.flush();
  }

  end(trailers: Fields, timeoutMs: number): void {
    if (this.#framing === 'chunked') this.#carrier.writer.text(lastChunk(trailers));
    this.#carrier.endResponse(this, this.#last, timeoutMs);
  }

  sendLocalReply(own: LocalReply, timeoutMs: number): void {
    const { writer } = this.#carrier;
    writer.clear();
    const last = own.closes || this.#mustClose() || !this.#isWorthDropping();
    writer.text(localReplyMessage(own, this.#head.method, last));
    this.#carrier.endResponse(this, last, timeoutMs);
  }

  cut(): void {
    this.#carrier.writer.flush();
    this.#carrier.cut(this.#framing === 'close');
  }

  pause(): void {
    this.#carrier.pause();
  }

  resume(): void {
    this.#carrier.resume(this);
  }

  becomeTunnel(
    switched: ResponseHead | undefined,
    to: TunnelEnd,
    idleMs: number,
    bytes: PassedBytes | undefined,
  ): void {
    const answer = switched === undefined ? CONNECTED : switchingHead(switched);
    this.#carrier.socket.write(answer, 'latin1');
    const { clock } = this.#context;
    runTunnel(new SocketSide(this.#carrier), new SocketSide(to), { clock, idleMs, bytes });
  }

  detach(): DetachedConnection {
    this.#carrier.socket.write(CONNECTED, 'latin1');
    return this.#carrier;
  }

  #framingFor(status: number, body: ResponseBody): ResponseFraming {
    if (body === 'none' || status === 205) return 'none';
    if (body === 'length') return 'length';
    return this.#head.minorVersion === 1 ? 'chunked' : 'close';
  }

  #mustClose(): boolean {
    const { endsWithResponse } = this.#carrier;
    return !this.#head.persistent || endsWithResponse || this.#context.load.phase !== 'serving';
  }

  #isWorthDropping(): boolean {
    if (this.requestComplete) return true;
    const { chunked, contentLength = 0 } = this.#head;
    return !chunked && contentLength <= WORTH_DROPPING_BYTES && !this.awaitsContinue;
  }
}

function bodyOf({ framing }: RequestHead, { snapshot }: ListenerContext): BodyDecoder | undefined {
  if (framing.kind !== 'length' && framing.kind !== 'chunked') return undefined;
  const body = bodyDecoder('request', framing, snapshot().limits);
  return body.complete ? undefined : body;
}

/** From the upstream's 101 (RFC 9110 §15.2.2). */
function switchingHead(head: ResponseHead): string {
  const protocols = fieldValues(head.fields, 'upgrade').join(', ');
  const fields = [...informationFields(head), 'connection', 'upgrade', 'upgrade', protocols];
  return serializeResponseHead(101, head.reason, fields);
}
