/** Load as fast as it is answered, by the program that speaks the cell's version of HTTP. */

import { CALLS, type Cell, PAYLOADS } from './cells.ts';
import { runH2load } from './h2load.ts';
import type { LoadFigures, LoadTarget } from './load-figures.ts';
import type { Dependencies } from './proxies/running-proxy.ts';
import { runWrk } from './wrk.ts';

export async function runLoad(
  target: LoadTarget,
  cell: Cell,
  seconds: number,
  { cores, upstream }: Dependencies,
): Promise<LoadFigures> {
  return await (cell.protocol === 'http2'
    ? runH2load(target, cell, upstream.messageFile(cell.call), seconds, cores)
    : runWrk(target, cell, seconds, cores));
}

/** What goes up with each request of a cell, beside its head. */
export function uploadedBytes(cell: Cell): number {
  return cell.protocol === 'http2' ? CALLS[cell.call].messageBytes : PAYLOADS[cell.payload].uploadBytes;
}
