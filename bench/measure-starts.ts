import { setTimeout as sleep } from 'node:timers/promises';
import { REFERENCE } from './cells.ts';
import type { ProxyKind } from './proxies/proxy.ts';
import { type Dependencies, launchProxy } from './proxies/running-proxy.ts';
import { median, type StartFigures } from './results.ts';

const LOG_LINE_BOUND_MS = 2000;

/** Medians of as many starts, one after the other. */
export async function measureStarts(
  kind: ProxyKind,
  surroundings: Dependencies,
  starts: number,
): Promise<StartFigures> {
  const connected: number[] = [];
  const logged: number[] = [];
  for (let index = 0; index < starts; index++) {
    const proxy = await launchProxy(kind, REFERENCE, surroundings);
    try {
      connected.push(proxy.connectedAfterMs);
      if (kind.name === 'sidecar') {
        const end = performance.now() + LOG_LINE_BOUND_MS;
        while (proxy.loggedAfterMs() === undefined && performance.now() < end) await sleep(1);
        logged.push(proxy.loggedAfterMs() ?? Number.POSITIVE_INFINITY);
      }
    } finally {
      await proxy.stop();
    }
  }
  return {
    toFirstConnectionMs: median(connected),
    ...(logged.length === 0 ? {} : { toLogLineMs: median(logged) }),
    starts,
  };
}
