import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, it } from 'vitest';
import { systemClock } from '../../../src/platform/time/clock.ts';
import { EgressFailure, EgressTunnel } from '../../../src/token/egress/egress-tunnel.ts';
import { startConnectProxy } from '../../support/connect-proxy.ts';

async function tunnelTo(host: string, connectTcp = connect) {
  const proxy = await startConnectProxy(
    { host: '127.0.0.1', port: 9 },
    { answer: 'HTTP/1.1 403 No\r\n\r\n' },
  );
  const tunnel = new EgressTunnel({
    proxy: proxy.config,
    host,
    port: 443,
    withinMs: 5_000,
    clock: systemClock,
    connectTcp: (options) => connectTcp(options),
  });
  const [failure] = await once(tunnel, 'error');
  return { proxy, failure };
}

it.each([
  'a\r\n\r\nget.example.com',
  'a b.example.com',
  'a/b.example.com',
  'a\0.example.com',
  'a@b.example.com',
  'a\xad.example.com',
  '',
])('for %j, which is no valid host, nothing is sent to the egress proxy', async (host) => {
  const { proxy, failure } = await tunnelTo(host);
  expect(failure).toBeInstanceOf(EgressFailure);
  expect(failure.message).toContain(`is not asked for ${JSON.stringify(host)}`);
  expect(proxy.asked).toEqual([]);
});

it.each([
  ['api.example.com', 'api.example.com:443'],
  ['api.example.com.', 'api.example.com.:443'],
  ['under_score.example.com', 'under_score.example.com:443'],
  ['192.0.2.7', '192.0.2.7:443'],
  ['2001:db8::1', '[2001:db8::1]:443'],
])('the egress proxy is asked for %s', async (host, authority) => {
  const { proxy } = await tunnelTo(host);
  expect(proxy.asked).toEqual([`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`]);
});

it('a connection that throws at once is a failure of the tunnel', async () => {
  const { failure } = await tunnelTo('api.example.com', () => {
    throw new TypeError('no such address');
  });
  expect(failure.message).toContain('cannot be asked: no such address');
});
