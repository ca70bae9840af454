import type { ClientRequest, IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { AppClient } from './app-client.ts';
import { DOWNLOAD_BYTES, payloadFrom } from './payload.ts';
import type { Tally } from './tally.ts';

const INTERVAL_MS = 50;

/** How a client leaves: begins a request, and calls `leave` midway. */
const WAYS: readonly ((app: AppClient, leave: (request: ClientRequest) => void) => ClientRequest)[] = [
  function beforeTheAnswer(app, leave) {
    const request = app.begin({ path: '/never', onNewConnection: true });
    request.end();
    setTimeout(leave, 50, request);
    return request;
  },
  function inAnUpload(app, leave) {
    const body = payloadFrom(0, DOWNLOAD_BYTES);
    const request = app.begin({ method: 'POST', path: '/digest', body: [body], onNewConnection: true });
    request.write(body.subarray(0, DOWNLOAD_BYTES / 2), () => leave(request));
    return request;
  },
  function inADownload(app, leave) {
    return leaveAtFirstByte(app, '/payload?offset=0&chunked=1', leave);
  },
  function inAnEventStream(app, leave) {
    return leaveAtFirstByte(app, '/events?count=30', leave);
  },
];

/**
 * Clients that leave midway, each in the next of the ways, until `stop`. To leave is no failure; to be refused, or
 * left, before that is.
 */
export async function leaveMidway(app: AppClient, tally: Tally, stop: AbortSignal): Promise<void> {
  for (let count = 0; !stop.aborted; count++) {
    const way = WAYS[count % WAYS.length] as (typeof WAYS)[number];
    await tally.measure('client that leaves', () => leaveOnce(app, way));
    await delay(INTERVAL_MS);
  }
}

function leaveOnce(app: AppClient, way: (typeof WAYS)[number]): Promise<void> {
  return new Promise((resolve, reject) => {
    let left = false;
    const request = way(app, (leaving) => {
      left = true;
      leaving.destroy();
    });
    request.on('error', (error) => {
      if (!left) reject(error);
    });
    request.once('close', () => {
      if (left) resolve();
      else reject(new Error('the exchange ended before the client had left'));
    });
  });
}

function leaveAtFirstByte(
  app: AppClient,
  path: string,
  leave: (request: ClientRequest) => void,
): ClientRequest {
  const request = app.begin({ path, onNewConnection: true });
  request.once('response', (response: IncomingMessage) => {
    response.on('error', () => response.destroy());
    if (response.statusCode === 200) response.once('data', () => leave(request));
    else request.destroy(new Error(`status ${response.statusCode}`));
  });
  request.end();
  return request;
}
