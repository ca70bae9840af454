import { Socket, type TcpNetConnectOpts } from 'node:net';
import { expect, it } from 'vitest';
import { Registry } from '../../../src/platform/prometheus.ts';
import { systemNetwork } from '../../../src/proxy/io/network.ts';
import { Dialer } from '../../../src/proxy/upstream/dialer.ts';
import { captureLog } from '../../support/log-capture.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { testProxyMetrics } from '../../support/proxy-metrics.ts';
import { routeTo } from '../../wire/sidecar.ts';

it('half of a short connect timeout is left for the second address', () => {
  const asked: TcpNetConnectOpts[] = [];
  const connectTcp = (options: TcpNetConnectOpts): Socket => {
    asked.push(options);
    return new Socket();
  };
  const address = { host: 'api.example.com', port: 80 };
  const dialer = new Dialer(routeTo({ address }, { timeouts: { connectMs: 200 } }), {
    clock: new ManualClock(),
    log: captureLog().log,
    network: { ...systemNetwork, connectTcp },
    observer: testProxyMetrics(new Registry()).forRoute('test'),
    onTlsChange() {},
  });
  dialer.dial({ buffer: Buffer.alloc(1), callback: () => true });
  expect(asked).toEqual([expect.objectContaining({ autoSelectFamilyAttemptTimeout: 100 })]);
});
