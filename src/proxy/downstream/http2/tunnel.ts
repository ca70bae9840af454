import { ErrorCode } from '../../http2/errors.ts';
import type { TunnelEvents, TunnelSide } from '../../tunnel/tunnel.ts';

export interface TunnelStream {
  /** False if the app falls behind. */
  write(chunk: Buffer): boolean;
  /** Towards the app. */
  endOutput(): void;
  pause(): void;
  resume(): void;
  /** Resets the stream if the app has not ended its side, or with `code`. */
  finish(code: ErrorCode | undefined): void;
}

/** A CONNECT's stream as one side of a tunnel (RFC 9113 §8.5). */
export class Http2Tunnel implements TunnelSide {
  readonly #stream: TunnelStream;
  #events: TunnelEvents | undefined;
  #inputEnded = false;
  #outputEnded = false;
  /** The upstream has closed: the stream is over once everything pending has been sent. */
  #closing = false;
  #over = false;

  constructor(stream: TunnelStream) {
    this.#stream = stream;
  }

  open(events: TunnelEvents): void {
    this.#events = events;
    this.#stream.resume();
  }

  write(chunk: Buffer): boolean {
    return this.#stream.write(chunk);
  }

  end(): void {
    this.#stream.endOutput();
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  close(): void {
    this.#closing = true;
    if (this.#outputEnded) this.#finish(undefined);
    else this.#stream.endOutput();
  }

  drop(): void {
    this.#finish(ErrorCode.CANCEL);
  }

  breakOff(): void {
    this.#finish(ErrorCode.CONNECT_ERROR);
  }

  bytes(chunk: Buffer): void {
    this.#events?.bytes(chunk);
  }

  inputEnded(): void {
    this.#inputEnded = true;
    this.#events?.ended();
    if (this.#outputEnded) this.#finish(undefined);
  }

  outputEnded(): void {
    this.#outputEnded = true;
    if (this.#inputEnded || this.#closing) this.#finish(undefined);
  }

  writable(): void {
    this.#events?.writable();
  }

  /** @param byReset whether the app reset the stream, rather than left. */
  gone(byReset: boolean): void {
    if (this.#over) return;
    this.#over = true;
    this.#events?.closed(byReset ? 'broken' : 'dropped');
  }

  #finish(code: ErrorCode | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#stream.finish(code);
    this.#events?.closed(code === undefined ? 'whole' : 'dropped');
  }
}
