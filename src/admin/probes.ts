/** The three probes of a sidecar, and what each of them means to the kubelet. */

import { type Clock, systemClock } from '../platform/time/clock.ts';
import { type AdminEndpoint, json, plain } from './admin-server.ts';

/** What the probes need from the program. */
export interface Health {
  /** What keeps it from serving, one entry each; empty if nothing does. */
  missing(): readonly MissingPart[];
  /** Whether the first token of every credential has been obtained, even if it has since expired. */
  started(): boolean;
  draining(): boolean;
  /** Resolves once `started` is true; if absent, the start is not awaited. */
  whenStarted?(): Promise<void>;
}

export interface MissingPart {
  /** `credential`, `listener`, `clients`, … */
  readonly part: string;
  readonly name: string;
  /** Why; never a secret. */
  readonly detail: string;
}

/**
 * - `/livez`: the event loop turns. It never depends on the identity provider: a restart would not heal that.
 * - `/readyz`: requests would be served now.
 * - `/startupz`: the first token is there, so the app may start; stays true, whatever happens later. If called too
 *   early it waits a moment: such a short start is no failure to report, and the app need not wait for the next probe.
 */
export function probes(
  health: Health,
  clock: Clock = systemClock,
): Record<'/livez' | '/readyz' | '/startupz', AdminEndpoint> {
  const soon = startSoon(health, clock);
  return {
    '/livez': { method: 'GET', answer: () => plain(200, 'ok') },
    '/readyz': {
      method: 'GET',
      answer() {
        const missing = health.missing();
        if (!health.draining() && missing.length === 0) return json(200, { status: 'ready' });
        return json(503, { status: health.draining() ? 'draining' : 'not ready', missing });
      },
    },
    '/startupz': {
      method: 'GET',
      due: soon,
      answer: () =>
        health.started()
          ? json(200, { status: 'started' })
          : json(503, { status: 'starting', missing: health.missing() }),
    },
  };
}

/** Less than the kubelet's timeout of a second, and than the second between its probes. */
const MOMENT_MS = 800;

/** Resolves for each waiter when the start or the moment is over, or when its caller has gone. */
function startSoon(
  { started, draining, whenStarted }: Health,
  clock: Clock,
): (whenGone: (leave: () => void) => void) => Promise<void> {
  /** As few as there are connections, so it can be searched; no Set (docs/decisions/0027). */
  const waiting: (() => void)[] = [];
  let isAwaited = false;

  function awaitStart(start: Promise<void>): void {
    // Once for all probes: a handler on a promise stays there until it settles.
    if (isAwaited) return;
    isAwaited = true;
    void start.then(() => {
      for (const leave of [...waiting]) leave();
    });
  }

  return async (whenGone) => {
    if (whenStarted === undefined || started() || draining()) return;
    awaitStart(whenStarted());
    await new Promise<void>((resolve) => {
      const cancel = clock.after(MOMENT_MS, leave);
      function leave(): void {
        const place = waiting.indexOf(leave);
        if (place < 0) return;
        waiting.splice(place, 1);
        cancel();
        resolve();
      }
      waiting.push(leave);
      whenGone(leave);
    });
  };
}

/** `POST /quitquitquit`: how a Job's main container reports that it is done, if the sidecar is not a native one. */
export function quitEndpoint(quit: () => void): AdminEndpoint {
  return {
    method: 'POST',
    loopbackOnly: true,
    answer() {
      // After the answer has been handed to the socket, so that the caller sees it.
      setImmediate(quit);
      return plain(200, 'stopping');
    },
  };
}
