import type { Clock } from '../../platform/time/clock.ts';
import { Deadline } from '../io/deadline.ts';
import type { PassedBytes } from './passed-bytes.ts';
import type { TunnelEvents, TunnelSide } from './tunnel-side.ts';

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
