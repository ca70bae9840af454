import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { AppClient } from './app-client.ts';
import { randomOffset } from './payload.ts';
import type { Tally } from './tally.ts';

const INTERVAL_MS = 50;
const SILENCE_MS = 30_000;

/** Clients that end their side with their last word, one after the other, until `stop`. Each asks twice at once. */
export async function halfClose(app: AppClient, tally: Tally, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    await tally.measure('client that half-closes', () => askTwiceAndEnd(app));
    await delay(INTERVAL_MS);
  }
}

async function askTwiceAndEnd({ address }: AppClient): Promise<void> {
  const asked = [`?q=${randomOffset()}`, `?q=${randomOffset()}`];
  const socket = connect({ ...address, allowHalfOpen: true });
  socket.setTimeout(SILENCE_MS, () => socket.destroy(new Error(`nothing came for ${SILENCE_MS} ms`)));
  socket.end(asked.map((query) => `GET /small${query} HTTP/1.1\r\nHost: app.example\r\n\r\n`).join(''));
  const answers = await text(socket);
  const bodies = [...answers.matchAll(/\{"asked":"([^"]*)"\}/g)].map(([, query]) => query);
  const statuses = [...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
  if (String(statuses) !== '200,200' || String(bodies) !== String(asked)) {
    throw new Error(`asked for ${asked}, got status ${statuses} for ${bodies}`);
  }
}
