import { type Clock, systemClock } from '../platform/time/clock.ts';
import { type AdminEndpoint, json, plain } from './admin-server.ts';

export interface Health {
  /** What keeps it from serving; empty if nothing does. */
  missing(): readonly MissingPart[];
  /** Even if the tokens have since expired. */
  started(): boolean;
  draining(): boolean;
  /** If absent, `/startupz` answers at once. */
  whenStarted?(): Promise<void>;
}

export interface MissingPart {
  readonly part: string;
  readonly name: string;
  readonly detail: string;
}

/**
 * - `/livez`: the event loop turns, whatever the identity provider does: a restart would not heal that.
 * - `/readyz`: requests would be served now.
 * - `/startupz`: the first token has come; never false again. Waits a moment for it.
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

/** Less than the kubelet's timeout of a second. */
const MOMENT_MS = 800;

/** Resolves after the start or the moment, or when the caller leaves. */
function startSoon(
  { started, draining, whenStarted }: Health,
  clock: Clock,
): (whenGone: (leave: () => void) => void) => Promise<void> {
  /** No Set (docs/decisions/0027). */
  const waiting: (() => void)[] = [];
  let isAwaited = false;

  function awaitStart(start: Promise<void>): void {
    // A handler stays on a promise until it settles.
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

/** For a Job's main container that is done, if the sidecar is not a native one. */
export function quitEndpoint(quit: () => void): AdminEndpoint {
  return {
    method: 'POST',
    loopbackOnly: true,
    answer() {
      setImmediate(quit);
      return plain(200, 'stopping');
    },
  };
}
