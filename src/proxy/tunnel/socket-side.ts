import type { Socket } from 'node:net';
import { cutOff, dropConnection } from '../io/cut-off.ts';
import type { GatheredWriter } from '../io/gathered-writer.ts';
import type { TakeBytes } from '../io/shared-read.ts';
import type { TunnelEvents, TunnelSide } from './tunnel-side.ts';

/** A connection given up to become one end of a tunnel. */
export interface TunnelEnd {
  readonly socket: Socket;
  readonly writer: Pick<GatheredWriter, 'bytes' | 'flush'>;
  /**
   * Passes bytes to `take` from here on.
   * @returns those already read.
   */
  takeOver(take: TakeBytes): Buffer | undefined;
}

/** A socket as one side of a tunnel. */
export class SocketSide implements TunnelSide {
  readonly #end: TunnelEnd;

  constructor(end: TunnelEnd) {
    this.#end = end;
  }

  open(events: TunnelEvents): void {
    const { socket } = this.#end;
    socket.on('end', () => {
      if (socket.errored === null) events.ended();
    });
    socket.on('drain', () => events.writable());
    socket.on('close', () => {
      if (socket.errored !== null) events.closed('broken');
      else events.closed(socket.readableEnded ? 'whole' : 'dropped');
    });
    socket.resume();
    const early = this.#end.takeOver((chunk) => events.bytes(chunk));
    if (early !== undefined) events.bytes(early);
    // Ended before there was a tunnel: no event will follow.
    if (socket.readableEnded) events.ended();
  }

  write(chunk: Buffer): boolean {
    this.#end.writer.bytes(chunk);
    return this.#end.writer.flush();
  }

  end(): void {
    this.#end.socket.end();
  }

  pause(): void {
    this.#end.socket.pause();
  }

  resume(): void {
    this.#end.socket.resume();
  }

  close(): void {
    this.#end.socket.destroySoon();
  }

  drop(): void {
    dropConnection(this.#end.socket);
  }

  breakOff(): void {
    cutOff(this.#end.socket);
  }
}
