import { http } from '../platform/net/node-http.ts';
import type { Clock } from '../platform/time/clock.ts';

interface CallingApp {
  summary(): string;
  stop(): Promise<void>;
}

const INTERVAL_MS = 200;

/**
 * The demo's app: it knows no token, calls `url` five times a second and counts failures.
 * @param onRefused called when answers become 401, and when they are 200 again: the sidecar's log has the rest.
 */
export function keepCalling(url: string, clock: Clock, onRefused: (refused: boolean) => void): CallingApp {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  let calls = 0;
  let failures = 0;
  let stopped = false;
  let refused = false;
  let cancel: () => void = () => undefined;

  function call(): void {
    const request = http.get(url, { agent }, (response) => {
      response.resume();
      response.once('end', () => {
        finish(response.statusCode === 200);
        watch(response.statusCode);
      });
    });
    request.once('error', () => finish(false));
  }

  function finish(succeeded: boolean): void {
    if (stopped) return;
    calls += 1;
    if (!succeeded) failures += 1;
    cancel = clock.after(INTERVAL_MS, call);
  }

  function watch(status: number | undefined): void {
    if (stopped || status !== (refused ? 200 : 401)) return;
    refused = !refused;
    onRefused(refused);
  }

  call();
  return {
    summary: () => `the app: ${calls === 1 ? '1 request' : `${calls} requests`}, ${failures} failed`,
    async stop() {
      stopped = true;
      cancel();
      agent.destroy();
    },
  };
}
