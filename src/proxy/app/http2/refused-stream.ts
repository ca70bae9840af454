import type { Clock } from '../../../platform/time/clock.ts';
import type { Fields } from '../../http/fields.ts';
import { ErrorCode } from '../../http2/errors.ts';
import type { ServerStream } from '../../http2/server-connection.ts';
import type { OwnAnswer } from '../../streams/contract.ts';
import { ownAnswerSection } from './answer.ts';
import { type ConnectionStream, type Http2StreamCarrier, STREAM_BYTES } from './connection-stream.ts';
import { Http2Sender, type SenderEvents } from './sender.ts';

/** A request that is answered without being looked at further: its head was too large. Its body is dropped as it comes. */
export class Http2RefusedStream implements ConnectionStream, SenderEvents {
  place = 0;
  inputEnded: boolean;
  patienceMs = 0;
  readonly #carrier: Http2StreamCarrier;
  readonly #stream: ServerStream<ConnectionStream>;
  readonly #sender: Http2Sender<ConnectionStream>;

  constructor(carrier: Http2StreamCarrier, stream: ServerStream<ConnectionStream>, clock: Clock) {
    this.inputEnded = stream.state.kind !== 'open';
    this.#carrier = carrier;
    this.#stream = stream;
    this.#sender = new Http2Sender(carrier.outlet, stream, clock, this);
  }

  get heldBytes(): number {
    return STREAM_BYTES + this.#sender.heldBytes;
  }

  /**
   * @param toHead whether the request is HEAD, as far as it could be read: then the answer has no body.
   * @param patienceMs how long the app may take to make room for it.
   */
  answer(own: OwnAnswer, toHead: boolean, patienceMs: number): void {
    this.patienceMs = patienceMs;
    this.#sender.head(ownAnswerSection(own));
    if (!toHead) this.#sender.data(Buffer.from(own.body, 'latin1'));
    this.#sender.end([], patienceMs);
  }

  takeData(data: Buffer, endStream: boolean): void {
    if (endStream) this.inputEnded = true;
    this.#carrier.outlet.consume(this.#stream, data.length);
  }

  takeTrailers(_fields: Fields): void {
    this.inputEnded = true;
  }

  afterRead(): void {}

  gone(_byReset: boolean): void {
    this.#sender.dispose();
    this.#carrier.released(this);
  }

  mayGoOn(): void {
    this.#sender.goOn();
  }

  leave(): void {
    this.#end(ErrorCode.CANCEL);
  }

  caughtUp(): void {}

  /** The answer has been handed over; the rest of the request is not wanted, if there is any (RFC 9113 §8.1). */
  sent(): void {
    this.#end(ErrorCode.NO_ERROR);
  }

  tooLate(): void {
    this.#end(ErrorCode.CANCEL);
  }

  #end(code: ErrorCode): void {
    this.#sender.dispose();
    this.#carrier.outlet.reset(this.#stream, code);
    this.#carrier.released(this);
  }
}
