import type { Command } from '../config/command.ts';
import { readFlags, readValue, type Settings } from '../config/settings.ts';
import { formats } from '../config/values.ts';
import { SidecarError, systemCodeOf } from '../platform/errors.ts';
import { formatAddress, type ListenAddress, reachableAddress } from '../platform/net/address.ts';
import { http } from '../platform/net/node-http.ts';
import { ConfigurationError, type Problem } from '../platform/problems.ts';
import { type Clock, hasPassed, later, remainingMs, systemClock } from '../platform/time/clock.ts';

const SETTINGS = {
  'admin-listen': {
    argument: 'HOST:PORT',
    description: "The sidecar's admin listener; 0.0.0.0 and [::] stand for this machine",
    default: '127.0.0.1:15081',
  },
  'wait-timeout': {
    argument: 'DURATION',
    description: 'Give up after this long; 0s asks once',
    default: '60s',
  },
} as const satisfies Settings;

const INTERVAL_MS = 100;

/** A sidecar sends an answer's head at once. */
const PROBE_MS = 2000;

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
    const address = readValue(given['admin-listen'], formats.listenAddress, problems) ?? {
      host: '127.0.0.1',
      port: 15_081,
    };
    const timeoutMs = readValue(given['wait-timeout'], formats.duration, problems) ?? 60_000;
    if (problems.length > 0) throw new ConfigurationError(problems);
    await waitUntilReady(reachableAddress(address), timeoutMs, systemClock, shutdown.signal);
    return 0;
  },
};

/**
 * Asks once if `timeoutMs` is 0.
 * @throws {SidecarError} `provider_unavailable` with the last answer, if the sidecar is not ready in time.
 */
export async function waitUntilReady(
  admin: ListenAddress,
  timeoutMs: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const deadline = later(clock.now(), timeoutMs);
  const leftOf = (ms: number) => Math.min(ms, remainingMs(deadline, clock.now()));
  let answer = 'no answer';
  for (;;) {
    answer = (await probe(admin, timeoutMs === 0 ? PROBE_MS : leftOf(PROBE_MS), clock)) ?? answer;
    if (answer === 'ready') return;
    if (signal.aborted)
      throw new SidecarError('provider_unavailable', 'asked to stop before the sidecar was ready');
    // The clock's timer would not keep the process alive.
    await new Promise((resolve) => setTimeout(resolve, leftOf(INTERVAL_MS)));
    if (hasPassed(deadline, clock.now())) {
      throw new SidecarError(
        'provider_unavailable',
        `the sidecar at ${formatAddress(admin)} was not ready within ${timeoutMs} ms: ${answer}`,
      );
    }
  }
}

/** Undefined if it takes longer than `withinMs`, even through endless interim answers. */
function probe({ host, port }: ListenAddress, withinMs: number, clock: Clock): Promise<string | undefined> {
  return new Promise((resolve) => {
    const request = http.get({ host, port, path: '/readyz', agent: false }, ({ statusCode }) => {
      settle(statusCode === 200 ? 'ready' : `/readyz answered ${statusCode}`);
    });
    const cancel = clock.after(withinMs, () => settle(undefined));
    request.on('error', (error) => settle(systemCodeOf(error) ?? 'no answer'));
    function settle(answer: string | undefined): void {
      cancel();
      resolve(answer);
      // The rest might be endless.
      request.destroy();
    }
  });
}
