/** Bytes both ways, between two sides: sockets, or streams that share their connection with others. */

import type { Socket } from 'node:net';
import type { Clock } from '../../platform/time/clock.ts';
import { Deadline } from '../io/deadline.ts';
import type { GatheredWriter } from '../io/gathered-writer.ts';
import { cutOff, dropConnection, type TakeBytes } from '../io/sockets.ts';

/**
 * How one side of a tunnel closed: `whole` after both of its directions had ended, `dropped` before that without a
 * fault, `broken` by a fault.
 */
type Closing = 'whole' | 'dropped' | 'broken';

/** The events of one side of a tunnel. */
export interface TunnelEvents {
  /** Bytes came; they are valid until this returns. */
  bytes(chunk: Buffer): void;
  /** Nothing more will come. */
  ended(): void;
  /** The peer takes more again. */
  writable(): void;
  closed(how: Closing): void;
}

/** One side of a tunnel: a socket, or a stream that shares its connection with others. */
export interface TunnelSide {
  /** Reports to `events` from here on, beginning with bytes that came already. */
  open(events: TunnelEvents): void;
  /** Passes on bytes, copied by the time this returns. Says whether the peer keeps up; if not, `writable` follows. */
  write(chunk: Buffer): boolean;
  /** Tells the peer that nothing more follows. */
  end(): void;
  /** Takes no more from the peer until `resume`. */
  pause(): void;
  resume(): void;
  /** Closes once what was written has left. */
  close(): void;
  /** Closes at once, as `breakOff` does if the peer has not taken all that was written. */
  drop(): void;
  /** Closes so that the peer cannot mistake what it got for everything. */
  breakOff(): void;
}

/** Bytes that have passed for one request: of its body and its answer's, without framing; of a tunnel, all of them. */
export interface PassedBytes {
  fromApp: number;
  toApp: number;
}

interface TunnelOptions {
  readonly clock: Clock;
  /** Without a byte in either direction for this long it is cut. */
  readonly idleMs: number;
  /** Counts what passes. */
  readonly bytes?: PassedBytes | undefined;
}

/**
 * Passes bytes both ways, those first that came glued to the heads. Each direction ends by itself; a fault or an idle bound
 * ends both. The head that makes it a tunnel has been written to the app. The bound holds until both sides have closed: one
 * that is to take what is left may take nothing any more.
 */
export function runTunnel(
  app: TunnelSide,
  upstream: TunnelSide,
  { clock, idleMs, bytes }: TunnelOptions,
): void {
  const idle = new Deadline(clock, () => {
    app.drop();
    upstream.drop();
  });
  let open = 2;
  const oneClosed = (): void => {
    open -= 1;
    if (open === 0) idle.dispose();
  };
  const touch = (): void => idle.set(clock.monotonicMs() + idleMs);
  touch();
  const passing = (
    from: TunnelSide,
    to: TunnelSide,
    way: keyof PassedBytes,
  ): Omit<TunnelEvents, 'closed'> => ({
    bytes(chunk) {
      touch();
      if (bytes !== undefined) bytes[way] += chunk.length;
      if (!to.write(chunk)) from.pause();
    },
    ended: () => to.end(),
    writable() {
      touch();
      to.resume();
    },
  });
  upstream.open({
    ...passing(upstream, app, 'toApp'),
    // Ended both ways it closes in peace, what is still to be written to the app included.
    closed(how) {
      oneClosed();
      if (how === 'whole') app.close();
      else app.breakOff();
    },
  });
  app.open({
    ...passing(app, upstream, 'fromApp'),
    closed(how) {
      oneClosed();
      if (how === 'whole') upstream.close();
      else if (how === 'dropped') upstream.drop();
      else upstream.breakOff();
    },
  });
}

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
