import { expect, it } from 'vitest';
import { systemClock } from '../../../src/platform/time/clock.ts';
import { ForwardProxy, HOST_LISTS, type HostList } from '../../../src/proxy/routing/forward-proxy.ts';
import { RefusedHosts } from '../../../src/proxy/routing/refused-hosts.ts';
import { captureLog } from '../../support/log-capture.ts';
import { TIMEOUTS } from '../../wire/sidecar.ts';

it.each(Object.keys(HOST_LISTS) as HostList[])('a host that is not listed %s is refused by name', (list) => {
  const hosts = new ForwardProxy({
    list,
    config: { allow: [], otherHosts: 'deny', connect: 'intercept', timeouts: TIMEOUTS },
    bearerOf: () => expect.unreachable(),
    activate: () => expect.unreachable(),
    refused: new RefusedHosts(systemClock),
    log: captureLog().log,
  });
  expect(() => hosts.listedRoute({ scheme: 'https', host: 'other.test', port: 443 })).toThrow(
    `other.test:443 is not on the list of ${HOST_LISTS[list].what}`,
  );
});
