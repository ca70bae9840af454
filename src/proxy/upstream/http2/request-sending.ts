import { ByteQueue } from '../../io/byte-queue.ts';
import type { CarriedStream } from './carried-stream.ts';
import type { UpstreamOutlet, WireStream } from './outlet.ts';

/** The body of one request on its way: what windows and socket take leaves, and the rest waits. */
export class RequestSending {
  /** Whether the request has been written whole. */
  whole = false;
  readonly #outlet: UpstreamOutlet;
  readonly #wire: WireStream;
  readonly #stream: CarriedStream;
  readonly #waiting = new ByteQueue();
  /** Octets still to come, where nothing can follow the last one. */
  #remaining: number | undefined;
  #stopped = false;
  /** What follows the body, once that is known. */
  #trailers: readonly string[] | undefined;

  /** @param bytes of the body, where that is known and no trailers can follow. */
  constructor(outlet: UpstreamOutlet, wire: WireStream, stream: CarriedStream, bytes: number | undefined) {
    this.#outlet = outlet;
    this.#wire = wire;
    this.#stream = stream;
    this.#remaining = bytes;
  }

  /** Whether windows and socket have taken all of it so far. */
  get keepsUp(): boolean {
    return this.#waiting.length === 0;
  }

  /** Octets that wait for room. */
  get heldBytes(): number {
    return this.#waiting.length;
  }

  /** The next piece. What cannot be sent is kept: no more than the app sends before it heeds `UpstreamStream.flush`. */
  data(slice: Buffer): void {
    if (!this.#mayFollow) return;
    let rest = slice;
    while (rest.length > 0) {
      const sent = this.keepsUp ? this.#send(rest) : 0;
      if (sent === 0) {
        this.#waiting.add(rest);
        this.#outlet.wait(this.#stream);
        return;
      }
      rest = rest.subarray(sent);
    }
  }

  /** Says what follows the body. */
  end(trailers: readonly string[]): void {
    this.#trailers = trailers;
  }

  /** Nothing more can be sent: drops what waits, and what still comes. */
  stop(): void {
    this.#stopped = true;
    this.#waiting.clear();
  }

  /** Sends one frame of what waits; says whether there was nothing, nothing could be sent, or something was sent. */
  sendOne(): 'nothing' | 'stuck' | 'sent' {
    if (!this.#mayFollow) this.stop();
    if (this.keepsUp) return 'nothing';
    const most = this.#outlet.sendable(this.#wire);
    if (most === 0) return 'stuck';
    this.#waiting.take(most, (octets) => this.#send(octets));
    return 'sent';
  }

  /** Ends the request, if all of it has been sent; says whether it has just become whole. */
  finish(): boolean {
    if (this.whole || this.#trailers === undefined || !this.keepsUp) return false;
    this.whole = true;
    // With a known length, the last octet has ended it already.
    if (this.#mayFollow) this.#outlet.end(this.#wire, this.#trailers);
    this.#outlet.flushSoon();
    return true;
  }

  /** Whether this side of the stream is still open. */
  get #mayFollow(): boolean {
    const { state } = this.#wire;
    return (
      !this.#stopped &&
      (state.kind === 'open' || (state.kind === 'half_closed' && state.endedBy === 'remote'))
    );
  }

  #send(bytes: Buffer): number {
    const last = this.#remaining !== undefined && this.#remaining <= bytes.length;
    const sent = this.#outlet.send(this.#wire, bytes, last);
    if (this.#remaining !== undefined) this.#remaining -= sent;
    return sent;
  }
}
