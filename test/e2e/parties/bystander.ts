/**
 * A caller that only asks, as a process of its own: `node bystander.ts VERSION TARGET` asks again and again on one
 * connection, and prints what became of it.
 */

import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { Agent, request } from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';
import type { Target } from './attack.ts';

export type Version = 'http/1.1' | 'h2';

export interface Asked {
  /** How many requests had which status; those without a whole answer had none. */
  readonly statuses: Readonly<Record<string, number>>;
  readonly p99Ms: number;
}

export const REQUESTS = 300;
const PAUSE_MS = 5;

/** Who waits for longer has no answer, and asks no more. */
const PATIENCE_MS = 5000;
const NOTHING = `no answer in ${PATIENCE_MS} ms`;

/** Those of a new connection, and of a program that has just begun. */
const UNMEASURED = 20;

type Ask = () => Promise<number>;

function overHttp1({ port, ca, cert, key }: Target): Ask {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const headers = { host: 'gateway.test' };
  const options = {
    agent,
    host: '127.0.0.1',
    port,
    ca,
    cert,
    key,
    servername: 'gateway.test',
    path: '/api/',
    headers,
  };
  return async () => {
    const asking = request(options);
    asking.end();
    const [response] = await once(asking, 'response');
    for await (const _ of response);
    return response.statusCode;
  };
}

function overHttp2({ port, ...tls }: Target): Ask {
  const session = connectHttp2(`https://gateway.test:${port}`, {
    host: '127.0.0.1',
    servername: 'gateway.test',
    ...tls,
  } as object);
  return async () => {
    const stream = session.request({ ':path': '/api/' });
    const [headers] = await once(stream, 'response');
    stream.resume();
    await once(stream, 'close');
    if (stream.rstCode !== 0) throw new Error(`the answer was reset with ${stream.rstCode}`);
    return headers[':status'];
  };
}

async function askAgainAndAgain(ask: Ask): Promise<Asked> {
  const statuses = new Map<string, number>();
  const tookMs: number[] = [];
  for (let count = -UNMEASURED; count < REQUESTS && !statuses.has(NOTHING); count++) {
    const beganMs = performance.now();
    const answered = ask().then(String, (error: Error) => error.message);
    const status = await Promise.race([answered, pause(PATIENCE_MS, NOTHING, { ref: false })]);
    if (count >= 0 || status === NOTHING) {
      tookMs.push(performance.now() - beganMs);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    await pause(PAUSE_MS);
  }
  tookMs.sort((a, b) => a - b);
  return {
    statuses: Object.fromEntries(statuses),
    p99Ms: tookMs[Math.floor(tookMs.length * 0.99)] as number,
  };
}

if (import.meta.main) {
  const [version, target = ''] = process.argv.slice(2);
  const reached = JSON.parse(target) as Target;
  const asked = await askAgainAndAgain(version === 'h2' ? overHttp2(reached) : overHttp1(reached));
  process.stdout.write(`${JSON.stringify(asked)}\n`);
  process.exit();
}
