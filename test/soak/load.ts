import { setTimeout as delay } from 'node:timers/promises';
import type { AppClient } from './app-client.ts';
import { pickExchange } from './exchanges.ts';
import { halfClose } from './half-closing-clients.ts';
import { leaveMidway } from './leaving-clients.ts';
import { holdWebSockets, readEventStreams } from './long-exchanges.ts';
import type { Tally } from './tally.ts';

/** Clients that each wait for their answer before they ask again. */
export const WORKERS = 16;

const WEBSOCKET_HOLD_MS = 5000;

/**
 * Mixed load until `stop`; resolves once the last exchange has ended. Short exchanges go on for as long as a long one
 * is open, so that no token is renewed unused.
 * @returns the number of short exchanges.
 */
export async function runLoad(
  app: AppClient,
  tally: Tally,
  rate: number,
  stop: AbortSignal,
): Promise<number> {
  const turn = paced(rate);
  let shortExchanges = 0;
  let longEnded = false;
  async function work(): Promise<void> {
    for (;;) {
      await turn();
      if (longEnded) return;
      const { kind, run } = pickExchange(Math.random());
      await tally.measure(kind, () => run(app));
      shortExchanges += 1;
    }
  }
  const long = Promise.all([
    readEventStreams(app, tally, stop),
    readEventStreams(app, tally, stop),
    holdWebSockets(app, tally, WEBSOCKET_HOLD_MS, stop),
    holdWebSockets(app, tally, Number.POSITIVE_INFINITY, stop),
    leaveMidway(app, tally, stop),
    halfClose(app, tally, stop),
  ]).then(() => {
    longEnded = true;
  });
  await Promise.all([long, ...Array.from({ length: WORKERS }, work)]);
  return shortExchanges;
}

/** Lets callers through one by one, `rate` a second at most; time that nobody used is not made up for. */
function paced(rate: number): () => Promise<void> {
  let nextAt = performance.now();
  return async () => {
    const now = performance.now();
    nextAt = Math.max(nextAt, now) + 1000 / rate;
    await delay(nextAt - now);
  };
}
