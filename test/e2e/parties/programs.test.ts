/** One caller of the injector, the broker or the issuer does what it may, all the time; another is answered as if it were not there. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { SURROUNDINGS } from '../../support/run-command.ts';
import type { ATTACKS, Target } from './caller-attack.ts';
import { builtProgram } from './in-memory.ts';
import { type Program, startInMemory } from './program-in-memory.ts';

const REQUESTS = 300;
const QUIET_REQUESTS = 100;
/** Attacker and program may have two processors between them: then no answer is quicker than its turn. */
const NOTICEABLE_MS = 1000;
const PAUSE_MS = 10;
/** A caller of any of them gives up after as long. */
const PATIENCE_MS = 10_000;

type Kind = 'kept' | 'fresh';

/** How a request ended, and after how long: one after the other, over one connection or a connection each. */
async function asked(target: Target, kind: Kind, requests: number) {
  const outcomes: Record<string, number> = {};
  const tookMs: number[] = [];
  let kept: Socket | undefined;
  for (let count = 0; count < requests; count++) {
    const beganMs = performance.now();
    const socket = kept ?? (await open(target));
    const outcome = await answered(socket, target.own?.[count % target.own.length] ?? target.request);
    if (kind === 'kept' && outcome === '200') kept = socket;
    else {
      kept = undefined;
      socket.destroy();
    }
    tookMs.push(performance.now() - beganMs);
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  kept?.destroy();
  tookMs.sort((a, b) => a - b);
  return { outcomes, p99Ms: tookMs[Math.ceil(tookMs.length * 0.99) - 1] as number };
}

async function open({ port, tls }: Target): Promise<Socket> {
  const to = { host: '127.0.0.1', port };
  const socket = tls === undefined ? connectTcp(to) : connectTls({ ...to, ...tls });
  socket.on('error', () => undefined);
  await new Promise<void>((resolve) => {
    socket.once(tls === undefined ? 'connect' : 'secureConnect', resolve);
    socket.once('close', () => resolve());
    setTimeout(resolve, PATIENCE_MS).unref();
  });
  return socket;
}

function answered(socket: Socket, request: string): Promise<string> {
  return new Promise((resolve) => {
    if (socket.destroyed) return resolve('refused');
    const settle = (outcome: string): void => {
      clearTimeout(timer);
      socket.off('data', onData);
      socket.off('close', onClose);
      resolve(outcome);
    };
    const timer = setTimeout(() => settle('late'), PATIENCE_MS);
    const onData = (data: Buffer): void => settle(data.toString('latin1', 9, 12));
    const onClose = (): void => settle('closed');
    socket.once('data', onData);
    socket.once('close', onClose);
    socket.write(request);
  });
}

async function attack(name: string, target: Target): Promise<void> {
  const program = new URL('caller-attack.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [program, name], {
    env: SURROUNDINGS,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  child.stdin.on('error', () => undefined).end(JSON.stringify(target));
  await once(child.stdout, 'data');
}

/** Each with what it would spoil. */
const ROWS: readonly (readonly [Program, keyof typeof ATTACKS, Kind])[] = [
  // Memory, by what is kept of who does not read.
  ['broker', 'unreadAnswers', 'kept'],
  // Memory, and room for connections.
  ['injector', 'unfinishedBodies', 'kept'],
  ['issuer', 'unfinishedBodies', 'fresh'],
  // Memory, by what is kept of who does not read, and by what a review takes.
  ['issuer', 'unreadAnswers', 'fresh'],
  ['injector', 'costlyRequests', 'kept'],
  // Verification of signatures, and questions to the API server.
  ['broker', 'costlyRequests', 'kept'],
  // Processors and threads, by slow hashes.
  ['issuer', 'costlyRequests', 'fresh'],
];

const built = builtProgram();

it.each(ROWS)(
  '%s: %s of one address, beside a caller with connections that are %s',
  async (program, name, kind) => {
    const { attacker, other, running } = await startInMemory(program, built());
    const quiet = await asked(other, kind, QUIET_REQUESTS);
    await attack(name, attacker);
    const attacked = await asked(other, kind, REQUESTS);
    expect(running.process.signalCode ?? running.process.exitCode).toBeNull();
    expect(attacked.outcomes).toEqual({ 200: REQUESTS });
    expect(attacked.p99Ms).toBeLessThan(Math.max(3 * quiet.p99Ms, NOTICEABLE_MS));
  },
);
