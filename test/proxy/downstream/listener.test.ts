import type { Server } from 'node:net';
import { expect, it } from 'vitest';
import type { DownstreamContext } from '../../../src/proxy/downstream/connection.ts';
import { HalfCloseWatch } from '../../../src/proxy/downstream/half-close-watch.ts';
import { Listener } from '../../../src/proxy/downstream/listener.ts';
import { type Network, systemNetwork } from '../../../src/proxy/io/network.ts';
import { Destinations } from '../../../src/proxy/routing/destinations.ts';
import { createPorts } from '../transaction/ported-transaction.ts';

it('draining closes the destinations of the current configuration after the last connection', async () => {
  const { context: shared, clock, replaceDestinations } = createPorts();
  const { destinations } = shared.snapshot();
  const closed: string[] = [];
  const closing = (name: string): Destinations =>
    Object.assign(new Destinations(destinations), { close: () => void closed.push(name) });
  replaceDestinations(closing('first'));
  const context: DownstreamContext = {
    ...shared,
    network: systemNetwork,
    peers: new HalfCloseWatch(clock, systemNetwork),
    http2Abuse: () => {},
  };
  const listener = new Listener(context);
  await listener.listen({ host: '127.0.0.1', port: 0 });
  const drained = listener.drain(1000);
  replaceDestinations(closing('second'));
  expect(closed).toEqual([]);
  await drained;
  expect(closed).toEqual(['second']);
});

it('sockets are accepted with allowHalfOpen and noDelay', async () => {
  const { context: shared, clock } = createPorts();
  const asked: unknown[] = [];
  const network: Network = {
    ...systemNetwork,
    createServer(options, accept) {
      asked.push(options);
      return systemNetwork.createServer(options, accept);
    },
  };
  const peers = new HalfCloseWatch(clock, network);
  const listener = new Listener({ ...shared, network, peers, http2Abuse: () => {} });
  await listener.listen({ host: '127.0.0.1', port: 0 });
  expect(asked).toEqual([{ allowHalfOpen: true, noDelay: true }]);
  await listener.drain(0);
});

it('an error while accepting connections is logged, and the listener stays open', async () => {
  const { context: shared, clock, lines } = createPorts();
  const servers: Server[] = [];
  const network: Network = {
    ...systemNetwork,
    createServer(options, accept) {
      const server = systemNetwork.createServer(options, accept);
      servers.push(server);
      return server;
    },
  };
  const listener = new Listener({
    ...shared,
    network,
    peers: new HalfCloseWatch(clock, network),
    http2Abuse: () => {},
  });
  await listener.listen({ host: '127.0.0.1', port: 0 });
  servers[0]?.emit('error', new Error('no descriptor is left'));
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 'error', err: { message: 'no descriptor is left' } },
  ]);
  expect(servers[0]?.listening).toBe(true);
  await listener.drain(0);
});
