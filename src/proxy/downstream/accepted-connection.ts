import type { Socket } from 'node:net';
import { checkPreface } from '../http2/settings.ts';
import { Deadline } from '../io/deadline.ts';
import { acceptShared, type TakeBytes } from '../io/sockets.ts';
import {
  type DownstreamConnection,
  type DownstreamContext,
  guarded,
  type HttpProtocol,
  type ProtocolHost,
} from './connection.ts';
import { Http1DownstreamConnection } from './http1/connection.ts';
import { Http2DownstreamConnection } from './http2/connection.ts';

interface BegunConnection {
  /** @returns the bytes already read. */
  takeOver(take: TakeBytes): Buffer | undefined;
}

/** Its first octets decide which HTTP version it speaks (RFC 9113 §3.4). */
export class AcceptedConnection implements DownstreamConnection, ProtocolHost {
  readonly socket: Socket;
  place = 0;
  readonly deadline: Deadline;
  readonly #context: DownstreamContext;
  readonly #onFree: () => void;
  #speaker: HttpProtocol | undefined;
  /** A beginning of the preface. */
  #first: Buffer | undefined;

  /**
   * @param onFree is called whenever a request is settled.
   * @param begun if part of it has been read already.
   */
  constructor(socket: Socket, context: DownstreamContext, onFree: () => void, begun?: BegunConnection) {
    const take = (chunk: Buffer): void => {
      this.guarded(() => {
        if (this.#speaker === undefined) this.#tell(chunk);
        else this.#speaker.bytes(chunk);
      });
    };
    this.socket = socket;
    this.#context = context;
    this.#onFree = onFree;
    this.deadline = new Deadline(context.clock, () =>
      this.guarded(() => (this.#speaker ?? this.#speakHttp1()).tooLate()),
    );
    this.deadline.set(context.clock.monotonicMs() + context.snapshot().limits.headerTimeoutMs);
    socket.on('end', () => {
      if (this.#speaker === undefined) this.closeIdle();
      else this.guarded(() => this.#speaker?.ended());
    });
    socket.on('drain', () => this.guarded(() => this.#speaker?.drained()));
    // Every end emits 'close'.
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      this.deadline.dispose();
      this.guarded(() => this.#speaker?.closed());
    });
    if (begun === undefined) acceptShared(socket, take);
    else {
      const early = begun.takeOver(take);
      if (early !== undefined) take(early);
    }
  }

  get busy(): boolean {
    return this.#speaker?.busy === true;
  }

  /** Estimated, of what is unfinished or unread. */
  get heldBytes(): number {
    return this.socket.readableLength + this.socket.writableLength + (this.#speaker?.heldBytes ?? 0);
  }

  addUpstreamSockets(to: Socket[]): void {
    this.#speaker?.addUpstreamSockets(to);
  }

  closeIdle(): void {
    if (this.#speaker === undefined) this.socket.destroySoon();
    else this.guarded(() => this.#speaker?.closeIdle());
  }

  drain(): void {
    this.guarded(() => this.#speaker?.drain());
  }

  guarded(tell: () => void): void {
    guarded(this.socket, this.#context.log, tell);
  }

  #tell(chunk: Buffer): void {
    const octets = this.#first === undefined ? chunk : Buffer.concat([this.#first, chunk]);
    switch (checkPreface(octets)) {
      case 'partial':
        this.#first = Buffer.from(octets);
        break;
      case 'http2':
        this.#first = undefined;
        this.#speaker = new Http2DownstreamConnection(this, this.#context, this.#onFree);
        this.#speaker.bytes(octets);
        break;
      case 'other':
        this.#first = undefined;
        this.#speakHttp1().bytes(octets);
    }
  }

  #speakHttp1(): HttpProtocol {
    const speaker = new Http1DownstreamConnection(this, this.#context, this.#onFree);
    this.#speaker = speaker;
    if (this.#first !== undefined) speaker.bytes(this.#first);
    this.#first = undefined;
    return speaker;
  }
}
