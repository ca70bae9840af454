import { Type } from '../../wire/http2/frames.ts';
import type { Message } from '../message.ts';
import { FrameSplitter, fieldsOf, requestOf } from './frame-splitter.ts';

/** Reads the heads of requests off what is written to a connection of HTTP/2. */
export class Http2RequestReader {
  readonly #splitter: FrameSplitter;
  #last = 0;

  constructor(onHead: (request: Message, stream: number) => void) {
    this.#splitter = new FrameSplitter(true, ({ type, streamId, payload }) => {
      // Trailers come on a stream that is known.
      if (type !== Type.HEADERS || streamId <= this.#last) return;
      this.#last = streamId;
      onHead(requestOf(fieldsOf(payload)), streamId);
    });
  }

  push(bytes: Buffer): void {
    this.#splitter.push(bytes);
  }
}
