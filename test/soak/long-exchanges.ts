/** Exchanges that stay open for seconds, across renewals: event streams and WebSockets. */

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { type RawData, WebSocket } from 'ws';
import { formatAddress } from '../../src/platform/net/address.ts';
import type { AppClient } from './app-client.ts';
import { payloadFrom, randomOffset } from './payload.ts';
import type { Tally } from './tally.ts';

const EVENTS = 30;
const ECHO_INTERVAL_MS = 100;
const SILENCE_MS = 30_000;

/** Reads event streams of three seconds, one after the other, until `stop`. The lag of each event is counted too. */
export async function readEventStreams(app: AppClient, tally: Tally, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) await tally.measure('event stream', () => readEvents(app, tally));
}

async function readEvents(app: AppClient, tally: Tally): Promise<void> {
  const request = app.begin({ path: `/events?count=${EVENTS}`, onNewConnection: true });
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    // What fails after the head fails the response, too.
    request.on('error', reject).once('response', resolve).end();
  });
  if (response.statusCode !== 200) {
    response.destroy();
    throw new Error(`status ${response.statusCode}`);
  }
  let received = 0;
  let rest = '';
  for await (const text of response.setEncoding('utf8')) {
    const events = (rest + text).split('\n\n');
    rest = events.pop() as string;
    for (const event of events) {
      const [, number, sentAt] = /^id: (\d+)\ndata: ([\d.]+)$/.exec(event) ?? [];
      if (Number(number) !== received) throw new Error(`event ${number} came in place of ${received}`);
      received += 1;
      tally.succeeded('event', performance.now() - Number(sentAt));
    }
  }
  if (received !== EVENTS) throw new Error(`the stream ended after ${received} of ${EVENTS} events`);
}

/** Holds WebSockets for `holdMs` each, one after the other, until `stop`; every message must come back. */
export async function holdWebSockets(
  app: AppClient,
  tally: Tally,
  holdMs: number,
  stop: AbortSignal,
): Promise<void> {
  while (!stop.aborted) await tally.measure('WebSocket', () => holdWebSocket(app, tally, holdMs, stop));
}

async function holdWebSocket(app: AppClient, tally: Tally, holdMs: number, stop: AbortSignal): Promise<void> {
  const socket = new WebSocket(`ws://${formatAddress(app.address)}/socket`, { handshakeTimeout: SILENCE_MS });
  const closed = new AbortController();
  socket.once('close', (code: number) => closed.abort(new Error(`closed with ${code}`)));
  const next = (event: string): Promise<unknown[]> => {
    const signal = AbortSignal.any([closed.signal, AbortSignal.timeout(SILENCE_MS)]);
    return once(socket, event, { signal }).catch((error: unknown) => {
      throw signal.aborted ? signal.reason : error;
    });
  };
  try {
    await next('open');
    const endsAt = performance.now() + holdMs;
    while (!stop.aborted && performance.now() < endsAt) {
      const sent = payloadFrom(randomOffset(), 1000);
      const sentAt = performance.now();
      socket.send(sent);
      const [received] = (await next('message')) as [RawData];
      if (!sent.equals(received as Buffer)) throw new Error('the message is not what was sent');
      tally.succeeded('WebSocket message', performance.now() - sentAt);
      await delay(ECHO_INTERVAL_MS);
    }
    const closing = once(socket, 'close', { signal: AbortSignal.timeout(SILENCE_MS) });
    socket.close(1000);
    const [code] = (await closing) as [number];
    if (code !== 1000) throw new Error(`closed with ${code}, not 1000`);
  } finally {
    socket.on('error', () => undefined);
    socket.terminate();
  }
}
