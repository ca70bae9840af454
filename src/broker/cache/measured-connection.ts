/** A TCP connection that accepts only as many bytes as were asked for: its client buffers everything until an answer is whole. */

import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { connectTcp } from '../../platform/net/connect.ts';

/** The client's own default: a connection whose other end has silently gone is closed. */
const KEEP_ALIVE_AFTER_MS = 30_000;

interface ConnectionAddress {
  readonly host: string;
  readonly port: number;
}

export class MeasuredConnection extends Duplex {
  readonly #socket: Socket;
  #mayCome: number;

  /** @param mayCome bytes, until the next `allow`. */
  constructor({ host, port }: ConnectionAddress, mayCome: number) {
    super();
    this.#mayCome = mayCome;
    const socket = connectTcp({
      host,
      port,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_AFTER_MS,
    });
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.once('end', () => this.push(null));
    socket.once('error', (error) => this.destroy(error));
    socket.once('close', () => this.destroy());
  }

  /** Bytes that may come from now on. */
  allow(bytes: number): void {
    this.#mayCome = bytes;
  }

  #take(chunk: Buffer): void {
    this.#mayCome -= chunk.length;
    if (this.#mayCome < 0) this.destroy(new UnaskedBytes());
    else if (!this.push(chunk)) this.#socket.pause();
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done);
  }

  override _final(done: () => void): void {
    this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}

export class UnaskedBytes extends Error {
  constructor() {
    super('more came than was asked for');
  }
}
