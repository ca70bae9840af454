/** A connection that Node will not even begin: it throws at once, for a name with a NUL in it for one. */

import { expect, it } from 'vitest';
import { Registry } from '../../../src/platform/prometheus.ts';
import { systemNetwork } from '../../../src/proxy/io/network.ts';
import { askUpstream } from '../../../src/proxy/tls/termination.ts';
import { OpenUpstreams } from '../../../src/proxy/upstream/connection-budget.ts';
import { Dialer, Dialling } from '../../../src/proxy/upstream/dialer.ts';
import { UpstreamFailures } from '../../../src/proxy/upstream/failures.ts';
import { UpstreamPools } from '../../../src/proxy/upstream/pools.ts';
import { captureLog } from '../../support/log-capture.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { testProxyMetrics } from '../../support/proxy-metrics.ts';
import { routeTo } from '../../wire/sidecar.ts';

const NUL_NAME = 'evil\0.example.com';

function unbeginnable() {
  const route = routeTo({
    address: { host: NUL_NAME, port: 443 },
    protocol: 'https',
    caFile: undefined,
  });
  const options = {
    clock: new ManualClock(),
    log: captureLog().log,
    network: systemNetwork,
    observer: testProxyMetrics(new Registry()).forRoute('test'),
  };
  return { route, options, clock: options.clock };
}

it('a dial that throws is reported once like any other failure and leaves no timer', async () => {
  const { route, options, clock } = unbeginnable();
  const dialer = new Dialer(route, { ...options, onTlsChange() {} });
  const told: string[] = [];
  const failed = Promise.withResolvers<void>();
  new Dialling({
    dialer,
    clock,
    failures: new UpstreamFailures('evil'),
    protocols: ['h2'],
    connectMs: 5_000,
    onStands: () => told.push('stands'),
    onFailed: (_, error) => {
      told.push(error.code);
      failed.resolve();
    },
  });
  await failed.promise;
  await clock.advance(60_000);
  expect(told).toEqual(['internal']);
  expect(clock.pendingTimers).toBe(0);
});

it('a dial that throws does not count towards the connection limit', async () => {
  const { route, options, clock } = unbeginnable();
  const all = new OpenUpstreams(1);
  const pools = new UpstreamPools({ ...route, protocol: 'auto' }, { ...options, all });
  for (let times = 0; times < 3; times++) {
    expect(await new Promise((resolve) => askUpstream(pools, resolve))).toBeUndefined();
    expect(all.mayOpen()).toBe(true);
  }
  await clock.advance(60_000);
  pools.close();
});
