import { join } from 'node:path';
import { type Http1Cell, PAYLOADS } from './cells.ts';
import type { Cores } from './cores.ts';
import type { OpenLoopFigures, OpenLoopSettings } from './open-loop.ts';
import { runPinned } from './pinned-process.ts';

const CLIENT = join(import.meta.dirname, 'open-loop.ts');
const GRACE_MS = 15_000;

/** Latency at a fixed rate, unless given that of the cell's payload, as open-loop.ts defines it, which speaks HTTP/1.1. */
export async function measureLatency(
  port: number,
  cell: Pick<Http1Cell, 'payload' | 'connections' | 'keepAlive'>,
  seconds: number,
  cores: Cores,
  perSecond: number = PAYLOADS[cell.payload].perSecond,
): Promise<OpenLoopFigures> {
  const { path, uploadBytes } = PAYLOADS[cell.payload];
  const { connections, keepAlive } = cell;
  const settings: OpenLoopSettings = { port, path, uploadBytes, perSecond, connections, keepAlive, seconds };
  const output = await runPinned(
    { command: process.execPath, args: [CLIENT, JSON.stringify(settings)], cores: cores.load },
    seconds * 1000 + GRACE_MS,
  );
  return JSON.parse(output);
}
