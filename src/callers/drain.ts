/** How a listener for callers ends. */

import type { Server } from 'node:https';
import type { Clock } from '../platform/time/clock.ts';
import type { CallerConnections } from './caller-connections.ts';

interface DrainOptions {
  /** How long the server goes on serving, while Services still send requests there. */
  readonly delayMs: number;
  /** How long requests then in flight may take to finish. */
  readonly timeoutMs: number;
  /** Whether connections without a request are closed right after the delay: for callers that then ask elsewhere. */
  readonly closeUnused: boolean;
  readonly clock: Clock;
}

/** Resolves once the server accepts nothing more and its last connection has ended. */
export async function drain(
  server: Server,
  connections: CallerConnections,
  { delayMs, timeoutMs, closeUnused, clock }: DrainOptions,
): Promise<void> {
  await new Promise<void>((resolve) => void clock.after(delayMs, resolve));
  await new Promise<void>((resolve) => {
    const cancel = clock.after(timeoutMs, () => connections.closeAll());
    server.close(() => {
      cancel();
      resolve();
    });
    server.closeIdleConnections();
    // Node considers them busy, and would wait for their requests.
    if (closeUnused) connections.closeUnused();
  });
}
