import { EventEmitter, once } from 'node:events';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2';
import { onTestFinished } from 'vitest';
import type { Sidecar } from '../sidecar.ts';
import { framed, MessageReader } from './framing.ts';

const END_STREAM = 1;

/** What a client knows of a call that is over. */
export interface Outcome {
  /** NaN where no head came. */
  readonly httpStatus: number;
  readonly head: IncomingHttpHeaders;
  /** Of trailers, which are the head where nothing else came. */
  readonly trailers: IncomingHttpHeaders;
  readonly trailersOnly: boolean;
  readonly messages: readonly string[];
  /** The code of RST_STREAM; 0 also for none. */
  readonly resetBy: number;
}

/** One call of an app. */
export class Call {
  readonly stream: ClientHttp2Stream;
  /** Resolves when the stream is closed, however. */
  readonly outcome: Promise<Outcome>;
  readonly #reader = new MessageReader();
  readonly #progress = new EventEmitter();

  constructor(stream: ClientHttp2Stream) {
    this.stream = stream;
    let head: IncomingHttpHeaders = {};
    let trailers: IncomingHttpHeaders = {};
    let trailersOnly = false;
    stream.on('response', (came, flags) => {
      head = came;
      trailersOnly = (flags & END_STREAM) !== 0;
      if (trailersOnly) trailers = came;
    });
    stream.on('trailers', (came) => {
      trailers = came;
    });
    stream.on('data', (piece: Buffer) => {
      this.#reader.add(piece);
      this.#progress.emit('message');
    });
    // What ends it ends in 'close', and shows in `rstCode`.
    stream.on('error', () => {});
    const closed = new Promise<void>((resolve) => stream.once('close', resolve));
    this.outcome = closed.then(() => ({
      httpStatus: Number(head[':status']),
      head,
      trailers,
      trailersOnly,
      messages: this.#reader.messages,
      resetBy: stream.rstCode ?? 0,
    }));
  }

  send(message: string): this {
    this.stream.write(framed(message));
    return this;
  }

  end(): this {
    this.stream.end();
    return this;
  }

  /** As a client does whose deadline has passed, or who wants no answer any more. */
  cancel(): void {
    this.stream.close(constants.NGHTTP2_CANCEL);
  }

  /** Resolves when so many messages have come. */
  async came(count: number): Promise<readonly string[]> {
    while (this.#reader.messages.length < count) await once(this.#progress, 'message');
    return this.#reader.messages;
  }
}

/** A connection of an app whose channel is plain text, as it is on loopback. */
export class Channel {
  readonly session: ClientHttp2Session;

  constructor(session: ClientHttp2Session) {
    this.session = session;
  }

  /** Begins a call. */
  call(metadata: OutgoingHttpHeaders = {}, path = '/shop.Orders/Place'): Call {
    const headers = {
      ':method': 'POST',
      ':path': path,
      te: 'trailers',
      'content-type': 'application/grpc',
      ...metadata,
    };
    return new Call(this.session.request(headers, { endStream: false }));
  }

  /** One message there, and the outcome. */
  unary(message: string, metadata?: OutgoingHttpHeaders, path?: string): Promise<Outcome> {
    return this.call(metadata, path).send(message).end().outcome;
  }
}

export async function openChannel({ address }: Sidecar): Promise<Channel> {
  const session = connect(`http://${address.host}:${address.port}`);
  session.on('error', () => {});
  onTestFinished(() => session.destroy());
  await once(session, 'connect');
  return new Channel(session);
}
