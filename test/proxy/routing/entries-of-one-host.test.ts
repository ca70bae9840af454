import { expect, it } from 'vitest';
import type { AllowedDestination, RouteConfig } from '../../../src/config/config.ts';
import { ForwardProxy } from '../../../src/proxy/routing/forward-proxy.ts';
import { RefusedHosts } from '../../../src/proxy/routing/refused-hosts.ts';
import type { ActiveRoute } from '../../../src/proxy/routing/routes.ts';
import { ManualClock } from '../../support/manual-clock.ts';

type ForwardProxyOptions = ConstructorParameters<typeof ForwardProxy>[0];

const TIMEOUTS = { connectMs: 1, responseMs: 1, idleMs: 1 };

function entry(settings: Partial<AllowedDestination>): AllowedDestination {
  return {
    host: 'api.example.com',
    credential: 'default',
    upgradeToTls: true,
    existingAuthorization: 'replace',
    whenTokenUnavailable: 'fail',
    protocol: 'auto',
    retryOn401: true,
    timeouts: TIMEOUTS,
    tls: {},
    ...settings,
  };
}

/** What is asked for, and the credential that is to go there. */
const ASKED = [
  ['CONNECT api.example.com:443', 'tls'],
  ['GET http://api.example.com:80/', 'clear'],
  ['CONNECT other:443', 'named'],
  ['GET http://unlisted.example.com:8080/', undefined],
] as const;

it.each([
  ['in this order', ASKED],
  ['in another', ASKED.toReversed()],
])('entries with the same upstream keep their own credential when requested %s', (_, asked) => {
  const options: ForwardProxyOptions = {
    list: 'forwardProxy',
    config: {
      allow: [
        entry({ port: 443, credential: 'tls' }),
        entry({ credential: 'clear' }),
        entry({ host: 'other', credential: 'named' }),
      ],
      otherHosts: 'pass',
      connect: 'intercept',
      timeouts: TIMEOUTS,
    },
    bearerOf: ({ credential }) => ({ credential }) as never,
    activate: (config: RouteConfig, bearer: unknown) =>
      ({ config, bearer, upstream: { close() {}, retire() {} } }) as unknown as ActiveRoute,
    refused: new RefusedHosts(new ManualClock()),
    log: { warn() {} } as never,
  };
  const proxy = new ForwardProxy(options);

  for (const [line, credential] of [...asked, ...asked]) {
    const [method = '', target = ''] = line.split(' ');
    const head = { method, target, host: undefined };
    const { route } = method === 'CONNECT' ? proxy.tunnelDestination(head) : proxy.requestDestination(head);
    expect((route as unknown as { bearer?: { credential: string } }).bearer?.credential, line).toBe(
      credential,
    );
  }
});
