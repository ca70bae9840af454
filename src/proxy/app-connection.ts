import type { Socket } from 'node:net';
import type { Clock } from '../clock.ts';
import type { Exchange } from './exchange.ts';

/** How long a refused client may go on sending before it is cut; closing at once could reset the answer away (RFC 9112 §9.6). */
export const LINGER_MS = 1_000;

/** One connection from the app, and the requests on it that are not settled, oldest first. */
export class AppConnection {
  readonly socket: Socket;
  readonly #clock: Clock;
  readonly #onFree: () => void;
  readonly #exchanges = new Set<Exchange>();
  #lastWords: string | undefined;
  #closing = false;

  /** `onFree` is called whenever the last request is settled. */
  constructor(socket: Socket, clock: Clock, onFree: () => void) {
    this.socket = socket;
    this.#clock = clock;
    this.#onFree = onFree;
    // Whatever ends a connection ends in 'close'; the error itself is of no use to anyone.
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      for (const exchange of [...this.#exchanges]) exchange.connectionClosed();
    });
  }

  get busy(): boolean {
    return this.#exchanges.size > 0;
  }

  /** Nothing that comes after this is a request. */
  get closing(): boolean {
    return this.#closing;
  }

  /** The request whose body is still being read. */
  get reading(): Exchange | undefined {
    for (const exchange of this.#exchanges) if (!exchange.incoming.complete) return exchange;
    return undefined;
  }

  begin(exchange: Exchange): void {
    this.#exchanges.add(exchange);
  }

  settle(exchange: Exchange): void {
    if (!this.#exchanges.delete(exchange)) return;
    const [next] = this.#exchanges;
    if (next !== undefined) {
      next.becameFirst();
      return;
    }
    if (this.#lastWords !== undefined) this.#end(this.#lastWords);
    this.#onFree();
  }

  /** Whether the answer to `exchange` is the next one due: an earlier one must not suffer for it. */
  isFirst(exchange: Exchange): boolean {
    const [first] = this.#exchanges;
    return first === exchange;
  }

  /** No further request is taken. */
  close(): void {
    this.#closing = true;
  }

  /** Sends a whole message once every earlier request has its answer, then closes. */
  endWith(message: string): void {
    this.#closing = true;
    if (this.busy) this.#lastWords = message;
    else this.#end(message);
  }

  #end(message: string): void {
    const { socket } = this;
    this.#lastWords = undefined;
    if (socket.destroyed || !socket.writable) {
      socket.destroy();
      return;
    }
    socket.end(message, 'latin1');
    socket.on('end', () => socket.destroy());
    socket.resume();
    const cancel = this.#clock.after(LINGER_MS, () => socket.destroy());
    socket.on('close', cancel);
  }
}
