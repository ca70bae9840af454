/** One caller of a gateway does what it may, all the time; another's requests are answered as if it were not there. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:https';
import { expect, it, onTestFinished } from 'vitest';
import { SURROUNDINGS } from '../../support/run-command.ts';
import type { ATTACKS, Target } from './attack.ts';
import { startGatewayInMemory } from './gateway-in-memory.ts';

const REQUESTS = 300;
const PAUSE_MS = 10;

/** Attacker, gateway and upstream may have two processors between them: then no answer is quicker than its turn. */
const NOTICEABLE_MS = 1000;

/** What each of them spoils, if anything, is behind an upstream of this kind. */
const UPSTREAMS: Readonly<Record<keyof typeof ATTACKS, 'http1' | 'h2c'>> = {
  endlessBlocks: 'h2c',
  endlessHeads: 'http1',
  idleConnections: 'http1',
  cancelledRequests: 'h2c',
  allInFlight: 'http1',
};

/** How long requests took that were sent one after the other, and their statuses. */
async function asked({ port, ca, cert, key }: Target) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const statuses = new Map<number, number>();
  const tookMs: number[] = [];
  for (let count = 0; count < REQUESTS; count++) {
    const beganMs = performance.now();
    const asking = request({
      agent,
      host: '127.0.0.1',
      port,
      ca,
      cert,
      key,
      servername: 'gateway.test',
      path: '/api/',
      headers: { host: 'gateway.test' },
    });
    asking.end();
    const [response] = await once(asking, 'response');
    for await (const _ of response);
    tookMs.push(performance.now() - beganMs);
    statuses.set(response.statusCode, (statuses.get(response.statusCode) ?? 0) + 1);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  agent.destroy();
  tookMs.sort((a, b) => a - b);
  return {
    statuses: Object.fromEntries(statuses),
    p99Ms: tookMs[Math.floor(tookMs.length * 0.99)] as number,
  };
}

async function attack(name: string, target: Target): Promise<ChildProcess> {
  const program = new URL('attack.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [program, name, JSON.stringify(target)], {
    env: SURROUNDINGS,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout as NodeJS.ReadableStream, 'data');
  return child;
}

it.each(Object.entries(UPSTREAMS))('%s of one caller, before an upstream of %s', async (name, protocol) => {
  const { attacker, other, gateway } = await startGatewayInMemory(protocol);
  const quiet = await asked(other);
  await attack(name, attacker);
  const attacked = await asked(other);
  expect(gateway.process.exitCode).toBeNull();
  expect(attacked.statuses).toEqual({ 200: REQUESTS });
  expect(attacked.p99Ms).toBeLessThan(Math.max(3 * quiet.p99Ms, NOTICEABLE_MS));
});
