import { expect, it } from 'vitest';
import type { AppContext } from '../../../src/proxy/app/context.ts';
import { Listener } from '../../../src/proxy/app/listener.ts';
import { PeerWatch } from '../../../src/proxy/app/peer-watch.ts';
import { systemNetwork } from '../../../src/proxy/io/network.ts';
import type { DestinationFinder } from '../../../src/proxy/routing/destinations.ts';
import { createPorts } from '../exchange/ported-exchange.ts';

it('draining closes the destinations that are in use by then, after the last connection', async () => {
  const { context: exchanges, clock } = createPorts();
  const closed: string[] = [];
  const closing = (name: string): DestinationFinder => ({
    ownNames: undefined,
    spoken: () => new Map(),
    find: (request) => exchanges.destinations.find(request),
    findListed: (list, asked, request) => exchanges.destinations.findListed(list, asked, request),
    routeTo: (list, asked) => exchanges.destinations.routeTo(list, asked),
    close: () => void closed.push(name),
  });
  const context: AppContext = {
    ...exchanges,
    destinations: closing('first'),
    network: systemNetwork,
    peers: new PeerWatch(clock, systemNetwork),
    http2Abuse: () => {},
  };
  const listener = new Listener(context);
  await listener.listen({ host: '127.0.0.1', port: 0 });
  const drained = listener.drain(1000);
  context.destinations = closing('second');
  expect(closed).toEqual([]);
  await drained;
  expect(closed).toEqual(['second']);
});
