import type { Socket } from 'node:net';
import { type Fields, hasField } from '../../http/fields.ts';
import { CHUNK_END, chunkStart, lastChunk, serializeRequestHead } from '../../http1/serialize.ts';
import type { Member } from '../../io/collections.ts';
import type { FieldSection, OutgoingRequest, UpstreamStream } from '../../streams/contract.ts';
import { type RequestBodyForm, upstreamFields } from '../../streams/header-rules.ts';
import type { TunnelEnd } from '../../tunnel/tunnel.ts';
import type { UpstreamConnection } from './connection.ts';

/** Others may have a body without content-length (RFC 9110 §8.6). */
const BODILESS: ReadonlySet<string> = new Set(['DELETE', 'GET', 'HEAD', 'OPTIONS', 'TRACE']);

/** Sends the requests of one connection, one after another. */
export class Http1UpstreamStream implements UpstreamStream, Member {
  place = 0;
  readonly protocol = 'http1';
  readonly connection: UpstreamConnection;
  #chunked = false;

  constructor(connection: UpstreamConnection) {
    this.connection = connection;
  }

  get ready(): boolean {
    return this.connection.ready;
  }

  get drained(): boolean {
    return this.connection.socket.writableLength === 0;
  }

  get heldBytes(): number {
    return this.connection.heldBytes;
  }

  get ownSocket(): Socket {
    return this.connection.socket;
  }

  get tunnelEnd(): TunnelEnd {
    return this.connection;
  }

  tie(): void {
    this.connection.tie();
  }

  send(request: OutgoingRequest, nowMs: number): void {
    const { connection } = this;
    const { from, hasBody, target } = request;
    connection.begin(from.method);
    const http2 = from.protocol === 'h2';
    // HTTP/2 messages with a Content-Length would lose their trailers.
    this.#chunked =
      hasBody && (from.contentLength === undefined || (http2 && hasField(from.fields, 'trailer')));
    const section = http2 && this.#chunked ? withoutLength(from) : from;
    const fields = upstreamFields(section, request, bodyForm(request, this.#chunked));
    connection.writer.text(serializeRequestHead(from.method, target, fields));
    if (!hasBody) connection.requestSent(nowMs);
  }

  data(slice: Buffer): void {
    const { writer } = this.connection;
    if (!this.#chunked) {
      writer.bytes(slice);
      return;
    }
    writer.text(chunkStart(slice.length));
    writer.bytes(slice);
    writer.text(CHUNK_END);
  }

  end(trailers: Fields, nowMs: number): void {
    if (this.#chunked) this.connection.writer.text(lastChunk(trailers));
    this.connection.requestSent(nowMs);
  }

  flush(): boolean {
    return this.connection.writer.flush();
  }

  touch(): void {
    this.connection.touch();
  }

  pause(): void {
    this.connection.pause();
  }

  resume(): void {
    this.connection.resume();
  }

  holdResponse(): void {
    this.connection.holdResponse();
  }

  releaseResponse(): void {
    this.connection.releaseResponse();
  }

  /** A drained answer is read if its end is near, so that the connection can be reused. */
  cancel(how?: { readonly drain: boolean }): void {
    if (how?.drain) this.connection.discardResponse();
    else this.connection.abandon();
  }

  release(): void {
    this.connection.giveBack();
  }
}

function bodyForm({ from, hasBody }: OutgoingRequest, chunked: boolean): RequestBodyForm {
  if (chunked) return 'chunked';
  return hasBody || BODILESS.has(from.method) ? 'plain' : 'empty';
}

function withoutLength({ fields, connectionOptions }: FieldSection): FieldSection {
  return {
    fields: fields.filter((_, at) => fields[at - (at % 2)] !== 'content-length'),
    connectionOptions,
  };
}
