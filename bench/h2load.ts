/** gRPC calls as fast as they are answered, by nghttp2's h2load: to proxies by h2c, to the upstream over TLS too. */

import { CALLS, type Http2Cell } from './cells.ts';
import type { Cores } from './cores.ts';
import type { LoadFigures, LoadTarget } from './load-figures.ts';
import { runPinned } from './pinned-process.ts';
import { requireProgram } from './programs.ts';

/** h2load ends by itself; this is for the day that it does not. */
const GRACE_MS = 15_000;

/** @param messageFile what each request sends */
export async function runH2load(
  target: LoadTarget,
  cell: Pick<Http2Cell, 'call' | 'connections' | 'streams'>,
  messageFile: string,
  seconds: number,
  cores: Cores,
): Promise<LoadFigures> {
  const { path } = await requireProgram('h2load');
  const wholeSeconds = Math.max(1, Math.round(seconds));
  const output = await runPinned(
    {
      command: path,
      args: [
        `--clients=${cell.connections}`,
        `--max-concurrent-streams=${cell.streams}`,
        `--threads=${Math.min(cores.loadCount, cell.connections)}`,
        `--duration=${wholeSeconds}`,
        // What gRPC clients open their windows to, so that no large answer waits for leave.
        '--window-bits=22',
        '--connection-window-bits=24',
        `--data=${messageFile}`,
        '--header=content-type: application/grpc',
        '--header=te: trailers',
        `${target.protocol}://127.0.0.1:${target.port}${CALLS[cell.call].path}`,
      ],
      cores: cores.load,
    },
    wholeSeconds * 1000 + GRACE_MS,
  );
  return readFigures(output, wholeSeconds);
}

/** @throws {Error} with what was printed, where that is not h2load's summary. */
export function readFigures(output: string, seconds: number): LoadFigures {
  const number = (pattern: RegExp): number => {
    const found = pattern.exec(output)?.[1];
    if (found === undefined) throw new Error(`h2load printed no figures: ${output.slice(-500)}`);
    return Number(found);
  };
  const counted = (what: string): number => number(new RegExp(`^requests: .*\\b(\\d+) ${what}\\b`, 'm'));
  const answered = (what: string): number => number(new RegExp(`^status codes: .*\\b(\\d+) ${what}\\b`, 'm'));
  const refused = answered('4xx') + answered('5xx');
  return {
    requests: counted('done'),
    durationUs: seconds * 1e6,
    bytes: number(/^traffic: \S+ \((\d+)\) total/m),
    refused,
    // Its failures are all of them: errors, timeouts, and answers of 400 or more.
    failed: Math.max(0, counted('failed') - refused),
  };
}
