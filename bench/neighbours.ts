/**
 * What others on the host take. In a virtual machine neither load nor stolen time tells of them: they have the other half of
 * the physical core, or the cache. A known piece of work takes longer then.
 */

import { join } from 'node:path';
import type { Cores } from './cores.ts';
import { runPinned } from './pinned-process.ts';

const WORK = join(import.meta.dirname, 'fixed-work.ts');
const BOUND_MS = 15_000;

/** How many milliseconds of CPU fixed-work.ts takes on the core of the proxies, now. */
export async function timeFixedWork({ proxy }: Cores): Promise<number> {
  return Number(await runPinned({ command: process.execPath, args: [WORK], cores: proxy }, BOUND_MS));
}
