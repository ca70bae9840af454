import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Clock } from '../../clock.ts';
import { Deadline } from '../io/deadline.ts';
import type { GatheredWriter } from '../io/gathered-writer.ts';
import type { TakeBytes } from '../io/shared-read.ts';

/** A connection that gives itself up to become one end of a tunnel. */
export interface TunnelEnd {
  readonly socket: Socket;
  readonly writer: Pick<GatheredWriter, 'bytes' | 'flush'>;
  /**
   * Bytes go to `take` from here on.
   * @returns those that came already.
   */
  takeOver(take: TakeBytes): Buffer | undefined;
}

export interface TunnelOptions {
  readonly clock: Clock;
  /** Without a byte in either direction for this long it is cut. */
  readonly idleMs: number;
}

/**
 * Sends `answer`, the head that makes the connection a tunnel, to the app, and from then on bytes both ways, those
 * first that came glued to the heads. Each direction ends by itself; a fault or an idle bound ends both.
 */
export function runTunnel(
  appConnection: TunnelEnd,
  upstreamConnection: TunnelEnd,
  answer: string,
  { clock, idleMs }: TunnelOptions,
): void {
  const { socket: app } = appConnection;
  const { socket: upstream } = upstreamConnection;
  const idle = new Deadline(clock, () => app.destroy());
  const touch = (): void => idle.set(clock.monotonicMs() + idleMs);
  touch();
  app.on('close', () => {
    idle.dispose();
    if (app.errored === null) upstream.destroy();
    else breakOff(upstream);
  });
  upstream.on('close', () => {
    // Ended both ways it closes in peace, what is still to be written to the app included.
    if (upstream.errored === null && upstream.readableEnded) app.destroySoon();
    else breakOff(app);
  });

  app.write(answer, 'latin1');
  const up = direction(app, upstreamConnection, touch);
  const down = direction(upstream, appConnection, touch);
  const fromApp = appConnection.takeOver(up);
  const fromUpstream = upstreamConnection.takeOver(down);
  if (fromUpstream !== undefined) down(fromUpstream);
  if (fromApp !== undefined) up(fromApp);
  // Ended before there was a tunnel: nobody else will say so.
  if (app.readableEnded) upstream.end();
  if (upstream.readableEnded) app.end();
}

/** Ends a connection so that the peer cannot take what it got for all there was. TLS, which has its own end, sends none. */
function breakOff(socket: Socket): void {
  if (socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}

/** Passes on what `from` has to say, no faster than `to` takes it, and its end. */
function direction(from: Socket, to: Pick<TunnelEnd, 'socket' | 'writer'>, touch: () => void): TakeBytes {
  from.on('end', () => to.socket.end());
  to.socket.on('drain', () => {
    touch();
    from.resume();
  });
  from.resume();
  return (chunk) => {
    touch();
    to.writer.bytes(chunk);
    if (!to.writer.flush()) from.pause();
  };
}
