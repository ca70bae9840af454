import { InterimResponses } from '../http/messages.ts';
import { Connection } from './connection.ts';
import type { ConnectionLimits, MessageStream, StreamHandler } from './connection-output.ts';
import type { FaultReason } from './errors.ts';
import { BodyLength } from './fields.ts';
import type { FrameOutput } from './frame-output.ts';
import type { TooLarge } from './hpack/decoder.ts';
import type { DecodedFields } from './hpack/known-blocks.ts';
import { expectedBodyBytes, type RequestKind, type ResponseSection, readResponse } from './messages.ts';
import { PREFACE, Setting } from './settings.ts';
import { ENDED_BY_LOCAL, OPEN } from './streams.ts';

export interface ClientStream<T> extends MessageStream<T> {
  readonly kind: 'client';
  readonly asked: RequestKind;
  interims: InterimResponses | undefined;
}

export interface ClientHandler<T> extends StreamHandler<ClientStream<T>> {
  /** Interim or final; with `endStream` no body follows. */
  answer(
    stream: ClientStream<T>,
    answer: ResponseSection,
    endStream: boolean,
    neverIndexed: readonly string[],
  ): void;
  /** `mayOpen` became true by something that came. After closing a stream, check it yourself. */
  mayOpen(): void;
}

export class ClientConnection<T> extends Connection<ClientStream<T>> {
  readonly #handler: ClientHandler<T>;
  /** What `mayOpen` was when reported, or when a request was sent. */
  #mayOpen = true;

  constructor(limits: ConnectionLimits, handler: ClientHandler<T>, output?: FrameOutput) {
    super('client', limits, handler, output);
    this.#handler = handler;
  }

  /** Requests may follow at once (RFC 9113 §3.4). */
  start(): void {
    this.output.octets(PREFACE);
    this.startSettings([[Setting.ENABLE_PUSH, 0]]);
  }

  /** The peer allows another request, has not said GOAWAY, and identifiers are left. */
  get mayOpen(): boolean {
    return this.streams.size < this.peer.maxConcurrentStreams && this.streams.nextId() !== undefined;
  }

  /**
   * Allowed if `mayOpen`.
   * @param fields pseudo-fields first
   * @param endStream no body follows
   */
  request(
    fields: readonly string[],
    asked: RequestKind,
    endStream: boolean,
    neverIndexed: readonly string[] = [],
  ): ClientStream<T> | undefined {
    const id = this.mayOpen ? this.streams.nextId() : undefined;
    if (id === undefined) {
      this.#mayOpen = false;
      return undefined;
    }
    this.writeFields(id, fields, endStream, neverIndexed);
    const stream = this.streams.open({
      kind: 'client',
      id,
      asked,
      state: endStream ? ENDED_BY_LOCAL : OPEN,
      ...this.newWindows(),
      body: undefined,
      context: undefined,
      tunnel: false,
      interims: undefined,
    });
    this.#mayOpen = this.mayOpen;
    return stream;
  }

  /** Push is disabled. */
  protected override get lastProcessedId(): number {
    return 0;
  }

  protected override settled(): void {
    const before = this.#mayOpen;
    this.#mayOpen = this.mayOpen;
    if (this.#mayOpen && !before) this.#handler.mayOpen();
  }

  protected override areTrailers(stream: ClientStream<T>): boolean {
    return stream.body !== undefined;
  }

  protected override head(
    _streamId: number,
    endStream: boolean,
    stream: ClientStream<T>,
    block: DecodedFields | TooLarge,
  ): FaultReason | undefined {
    if (block.kind === 'too_large') return this.failMoved(stream, 'fields_too_large');
    const answer = readResponse(block.fields, stream.asked, endStream);
    if (typeof answer === 'string') return this.failMoved(stream, answer);
    if (answer.kind === 'interim' && this.#isFlood(stream, block.fields)) {
      return this.failMoved(stream, 'interim_flood');
    }
    if (answer.kind === 'final') {
      stream.tunnel = stream.asked === 'connect' && answer.status < 300;
      stream.body = new BodyLength(expectedBodyBytes(answer, stream.asked));
      const wrong = endStream ? stream.body.receive(0, true) : undefined;
      if (wrong !== undefined) return this.failMoved(stream, wrong);
    }
    this.#handler.answer(stream, answer, endStream, block.neverIndexed);
    return undefined;
  }

  #isFlood(stream: ClientStream<T>, fields: readonly string[]): boolean {
    stream.interims ??= new InterimResponses();
    return stream.interims.isFlood(fields, this.limits.section.sectionBytes);
  }
}
