import type { Socket } from 'node:net';
import type { Clock } from '../../platform/time/clock.ts';
import type { CoalescingWriter } from '../io/coalescing-writer.ts';
import { Deadline } from '../io/deadline.ts';
import { cutOff, dropConnection, type TakeBytes } from '../io/sockets.ts';

/**
 * - `whole`: after both directions had ended.
 * - `dropped`: before that, without a fault.
 * - `broken`: by a fault.
 */
type Closing = 'whole' | 'dropped' | 'broken';

export interface TunnelEvents {
  /** Valid until this returns. */
  bytes(chunk: Buffer): void;
  ended(): void;
  /** The peer takes more again. */
  writable(): void;
  closed(how: Closing): void;
}

export interface TunnelSide {
  /** Begins with bytes that came already. */
  open(events: TunnelEvents): void;
  /** Copies the bytes before it returns. False if the peer falls behind: `writable` follows. */
  write(chunk: Buffer): boolean;
  end(): void;
  pause(): void;
  resume(): void;
  /** Once what was written has left. */
  close(): void;
  /** At once; by `breakOff` if something written has not left. */
  drop(): void;
  /** The peer cannot mistake what it got for everything. */
  breakOff(): void;
}

/** Of bodies, without framing; of a tunnel, all bytes. */
export interface PassedBytes {
  fromApp: number;
  toApp: number;
}

interface TunnelOptions {
  readonly clock: Clock;
  /** A tunnel without a byte for this long is cut. */
  readonly idleMs: number;
  readonly bytes?: PassedBytes | undefined;
}

/**
 * Starts with the bytes that came with the heads. Each direction ends by itself; a fault or the idle bound ends both.
 * The bound holds until both sides have closed, since a peer may never take the rest.
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

export interface TunnelEnd {
  readonly socket: Socket;
  readonly writer: Pick<CoalescingWriter, 'bytes' | 'flush'>;
  /** @returns the bytes already read. */
  takeOver(take: TakeBytes): Buffer | undefined;
}

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
    // Already ended: no event will follow.
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
