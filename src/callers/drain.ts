/** How a listener for callers comes to its end. */

import type { Server } from 'node:https';
import type { Clock } from '../clock.ts';
import type { CallerConnections } from './caller-connections.ts';

export interface DrainOptions {
  /** In which the server goes on serving, while Services still send requests there. */
  readonly delayMs: number;
  /** In which what is in flight then may finish. */
  readonly timeoutMs: number;
  /** Whether who has sent nothing of a request is let go as soon as the delay is over: for callers that then ask elsewhere. */
  readonly closeUnused: boolean;
  readonly clock: Clock;
}

/** Resolves when the server accepts nothing more and its last connection has ended. */
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
    // To Node they are busy: it would wait for their requests.
    if (closeUnused) connections.closeUnused();
  });
}
