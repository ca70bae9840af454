import { type Clock, isPast, later, systemClock } from '../clock.ts';
import type { ListenAddress } from '../config/config.ts';
import { ConfigurationError, type Problem } from '../config/problems.ts';
import { readFlags, readValue, type Settings } from '../config/settings.ts';
import { duration, formatAddress, listenAddress, reachableAddress } from '../config/values.ts';
import { SidecarError, systemCodeOf } from '../errors.ts';
import { http } from '../node-http.ts';
import type { Command } from './command.ts';

const SETTINGS = {
  'admin-listen': {
    argument: 'HOST:PORT',
    description: "The sidecar's admin listener; 0.0.0.0 and [::] stand for this machine",
    default: '127.0.0.1:15081',
  },
  'wait-timeout': { argument: 'DURATION', description: 'Give up after this long', default: '60s' },
} as const satisfies Settings;

const INTERVAL_MS = 100;

export const wait: Command = {
  summary:
    'Block until a running sidecar is ready, for entrypoints of apps beside a classic sidecar container',
  settings: SETTINGS,
  examples: [
    ['token-sidecar wait && exec ./app', 'an app beside a classic sidecar container'],
    ['token-sidecar wait --admin-listen 127.0.0.1:15081 --wait-timeout 5m', 'for longer, at another place'],
  ],
  async run({ args, env, shutdown }) {
    const given = readFlags(SETTINGS, args, env);
    const problems: Problem[] = [];
    const address = readValue(given['admin-listen'], listenAddress, problems) ?? {
      host: '127.0.0.1',
      port: 15_081,
    };
    const timeoutMs = readValue(given['wait-timeout'], duration, problems) ?? 60_000;
    if (problems.length > 0) throw new ConfigurationError(problems);
    await waitUntilReady(reachableAddress(address), timeoutMs, systemClock, shutdown.signal);
    return 0;
  },
};

/** @throws {SidecarError} `provider_unavailable` with the last answer, when the sidecar is not ready in time. */
export async function waitUntilReady(
  admin: ListenAddress,
  timeoutMs: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const deadline = later(clock.now(), timeoutMs);
  for (;;) {
    const answer = await probe(admin);
    if (answer === 'ready') return;
    if (signal.aborted)
      throw new SidecarError('provider_unavailable', 'asked to stop before the sidecar was ready');
    if (isPast(deadline, clock.now())) {
      throw new SidecarError(
        'provider_unavailable',
        `the sidecar at ${formatAddress(admin)} was not ready within ${timeoutMs} ms: ${answer}`,
      );
    }
    // Not the clock's timer, which does not keep a process alive: waiting is all that this one does.
    await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS));
  }
}

function probe({ host, port }: ListenAddress): Promise<string> {
  return new Promise((resolve) => {
    const request = http.get({ host, port, path: '/readyz', agent: false, timeout: 2000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200 ? 'ready' : `/readyz answered ${response.statusCode}`);
    });
    request.once('timeout', () => request.destroy());
    request.once('error', (error) => resolve(systemCodeOf(error) ?? 'no answer'));
  });
}
