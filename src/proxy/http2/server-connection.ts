import { Connection } from './connection.ts';
import type { ConnectionLimits, MessageStream, StreamHandler } from './connection-output.ts';
import type { FaultReason } from './errors.ts';
import { BodyLength } from './fields.ts';
import type { FrameOutput } from './frame-output.ts';
import type { TooLarge } from './hpack/decoder.ts';
import type { DecodedFields } from './hpack/known-blocks.ts';
import { type RequestSection, readRequest } from './messages.ts';
import { Setting } from './settings.ts';
import { ENDED_BY_REMOTE, OPEN } from './streams.ts';

export interface ServerStream<T> extends MessageStream<T> {
  readonly kind: 'server';
}

/** These can be answered with an error. */
export type RefusedRequest = Extract<FaultReason, 'fields_too_large' | 'path_too_long'>;

export interface ServerHandler<T> extends StreamHandler<ServerStream<T>> {
  /** @param endStream no body follows */
  request(
    stream: ServerStream<T>,
    request: RequestSection,
    endStream: boolean,
    neverIndexed: readonly string[],
  ): void;
  /** The request was reset. */
  malformed(reason: FaultReason): void;
  /**
   * Answer it, and reset it unless it has ended.
   * @param fields unchecked, as far as the limits let through
   */
  refused(stream: ServerStream<T>, reason: RefusedRequest, fields: readonly string[]): void;
}

export class ServerConnection<T> extends Connection<ServerStream<T>> {
  readonly #handler: ServerHandler<T>;

  constructor(limits: ConnectionLimits, handler: ServerHandler<T>, output?: FrameOutput) {
    super('server', limits, handler, output);
    this.#handler = handler;
  }

  /** Whoever recognised HTTP/2 has read the client's preface. */
  start(): void {
    this.startSettings([[Setting.MAX_CONCURRENT_STREAMS, this.limits.maxStreams]]);
  }

  protected override get lastProcessedId(): number {
    return this.streams.lastProcessedId;
  }

  protected override areTrailers(): boolean {
    return true;
  }

  protected override head(
    streamId: number,
    endStream: boolean,
    _stream: undefined,
    block: DecodedFields | TooLarge,
  ): FaultReason | undefined {
    const refusal = this.streams.refusalOf(streamId, this.limits.maxStreams);
    if (refusal !== undefined) return this.failStream(streamId, refusal);
    const request =
      block.kind === 'fields' ? readRequest(block.fields, this.limits) : ('fields_too_large' as const);
    if (typeof request === 'string' && request !== 'fields_too_large' && request !== 'path_too_long') {
      return this.#failRequest(streamId, request);
    }
    const expected = typeof request === 'string' ? undefined : request.contentLength;
    const body = new BodyLength(expected);
    const wrong = endStream ? body.receive(0, true) : undefined;
    if (wrong !== undefined) return this.#failRequest(streamId, wrong);
    const stream = this.streams.open({
      kind: 'server',
      id: streamId,
      state: endStream ? ENDED_BY_REMOTE : OPEN,
      ...this.newWindows(),
      body,
      context: undefined,
      tunnel: typeof request !== 'string' && request.method === 'CONNECT',
    });
    if (typeof request === 'string') {
      this.#handler.refused(stream, request, block.fields);
      return undefined;
    }
    const neverIndexed = block.kind === 'fields' ? block.neverIndexed : [];
    this.#handler.request(stream, request, endStream, neverIndexed);
    return undefined;
  }

  #failRequest(streamId: number, reason: FaultReason): FaultReason | undefined {
    this.#handler.malformed(reason);
    return this.failStream(streamId, reason);
  }
}
