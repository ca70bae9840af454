/** Load as fast as it is answered, by wrk: for CPU and throughput. Its latencies say how busy the proxy was, no more. */

import { join } from 'node:path';
import { type Http1Cell, PAYLOADS } from './cells.ts';
import type { Cores } from './cores.ts';
import type { LoadFigures, LoadTarget } from './load-figures.ts';
import { runPinned } from './pinned-process.ts';
import { requireProgram } from './programs.ts';

export interface WrkFigures extends LoadFigures {
  readonly p50Us: number;
  readonly p99Us: number;
}

const SCRIPT = join(import.meta.dirname, 'wrk.lua');

/** wrk ends by itself; this is for the day that it does not. */
const GRACE_MS = 15_000;

export async function runWrk(
  target: LoadTarget,
  cell: Pick<Http1Cell, 'payload' | 'connections' | 'keepAlive'>,
  seconds: number,
  cores: Cores,
): Promise<WrkFigures> {
  const { path } = await requireProgram('wrk');
  const payload = PAYLOADS[cell.payload];
  const threads = Math.min(cores.loadCount, cell.connections);
  const output = await runPinned(
    {
      command: path,
      args: [
        `-t${threads}`,
        `-c${cell.connections}`,
        `-d${Math.max(1, Math.round(seconds))}s`,
        '--timeout=10s',
        `--script=${SCRIPT}`,
        `${target.protocol}://127.0.0.1:${target.port}${payload.path}`,
        '--',
        String(payload.uploadBytes),
        cell.keepAlive ? 'keep' : 'close',
      ],
      cores: cores.load,
    },
    seconds * 1000 + GRACE_MS,
  );
  const json = /^JSON (.*)$/m.exec(output)?.[1];
  if (json === undefined) throw new Error(`wrk printed no figures: ${output.slice(-500)}`);
  return JSON.parse(json);
}
