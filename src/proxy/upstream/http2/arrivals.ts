import type { Fields } from '../../http/fields.ts';
import type { AnswerSection } from '../../http2/answer-section.ts';
import type { ClientHandler } from '../../http2/client-connection.ts';
import { ErrorCode } from '../../http2/error-code.ts';
import type { GoawayFrame } from '../../http2/frame.ts';
import type { Broken } from '../../http2/stream-handler.ts';
import type { CarriedStream } from './carried-stream.ts';
import type { WireStream } from './outlet.ts';

/** What comes for the connection as a whole. */
interface ArrivalEvents {
  /** The upstream has refused a request without processing it. */
  onRefused(): void;
  /** The upstream has reset a request because too much was asked on the connection (RFC 9113 §7). */
  onEnhanceYourCalm(): void;
  /** The upstream takes no further requests. */
  onGoaway(): void;
  /** A window has grown. */
  onWritable(): void;
  /** Another request may be begun. */
  onMayOpen(): void;
}

/** Receives what comes on one HTTP/2 connection, and passes it to the request concerned. */
export class Arrivals implements ClientHandler<CarriedStream> {
  readonly #events: ArrivalEvents;
  /** Streams that the present read has brought something for. */
  #touched: CarriedStream[] = [];
  #refuses = false;
  #answeredAny = false;
  #goaway: ErrorCode | undefined;

  constructor(events: ArrivalEvents) {
    this.#events = events;
  }

  /** Whether the upstream has refused a request since it answered one. */
  get refuses(): boolean {
    return this.#refuses;
  }

  /** Whether any answer has come. */
  get answeredAny(): boolean {
    return this.#answeredAny;
  }

  /** The code of the GOAWAY that came. */
  get goawayCode(): ErrorCode | undefined {
    return this.#goaway;
  }

  /** Everything that came in one piece has been passed on. */
  pieceEnded(nowMs: number): void {
    const touched = this.#touched;
    if (touched.length === 0) return;
    this.#touched = [];
    for (const stream of touched) stream.pieceEnded(nowMs);
  }

  answer(wire: WireStream, answer: AnswerSection, endStream: boolean, neverIndexed: readonly string[]): void {
    this.#answeredAny = true;
    this.#refuses = false;
    const { context } = wire;
    if (context === undefined) return;
    this.#touched.push(context);
    context.answerCame(answer, endStream, neverIndexed);
  }

  data(wire: WireStream, data: Buffer, endStream: boolean): void {
    const { context } = wire;
    if (context === undefined) return;
    this.#touched.push(context);
    context.dataCame(data, endStream);
  }

  trailers(wire: WireStream, fields: Fields): void {
    wire.context?.trailersCame(fields);
  }

  broken(wire: WireStream, how: Broken): void {
    if (how.kind === 'reset' && how.code === ErrorCode.REFUSED_STREAM) {
      this.#refuses = true;
      this.#events.onRefused();
    } else if (how.kind === 'reset' && how.code === ErrorCode.ENHANCE_YOUR_CALM) {
      this.#events.onEnhanceYourCalm();
    }
    wire.context?.brokenOff(how);
  }

  writable(_wire: WireStream | undefined): void {
    this.#events.onWritable();
  }

  goaway({ code }: GoawayFrame): void {
    this.#goaway = code;
    this.#events.onGoaway();
  }

  mayOpen(): void {
    this.#events.onMayOpen();
  }
}
