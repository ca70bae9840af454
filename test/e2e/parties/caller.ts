/**
 * A caller of the injector, the broker or the issuer that only asks, as a process of its own: `node caller.ts KIND REQUESTS`, with the
 * target on standard input, asks one request after the other, and prints what became of them.
 */

import { connect as connectTcp, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import type { Target } from './caller-attack.ts';

/** One connection for all requests, or one for each. */
export type Kind = 'kept' | 'fresh';

export interface Asked {
  /** How many requests had which status; those without an answer had none. */
  readonly outcomes: Readonly<Record<string, number>>;
  readonly p99Ms: number;
}

const PAUSE_MS = 10;
/** A caller of any of them gives up after as long. */
const PATIENCE_MS = 10_000;
/** Who waits for each answer asks for fewer. */
const ENOUGH_MS = 3000;

async function askAgainAndAgain(target: Target, kind: Kind, requests: number): Promise<Asked> {
  const outcomes: Record<string, number> = {};
  const tookMs: number[] = [];
  let kept: Socket | undefined;
  const endMs = performance.now() + ENOUGH_MS;
  for (let count = 0; count < requests && performance.now() < endMs; count++) {
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

if (import.meta.main) {
  const [kind, requests] = process.argv.slice(2);
  const target = JSON.parse(await text(process.stdin)) as Target;
  const asked = await askAgainAndAgain(target, kind as Kind, Number(requests));
  process.stdout.write(`${JSON.stringify(asked)}\n`);
  process.exit();
}
