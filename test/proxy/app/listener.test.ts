import { expect, it } from 'vitest';
import type { AppContext } from '../../../src/proxy/app/context.ts';
import { Listener } from '../../../src/proxy/app/listener.ts';
import { PeerWatch } from '../../../src/proxy/app/peer-watch.ts';
import { systemNetwork } from '../../../src/proxy/io/network.ts';
import type { DestinationFinder } from '../../../src/proxy/routing/destinations.ts';
import { createPorts } from '../exchange/ported-exchange.ts';

it('draining closes the destinations that are in use by then, after the last connection', async () => {
  const { context: exchanges, clock, replaceDestinations } = createPorts();
  const { destinations } = exchanges.generation();
  const closed: string[] = [];
  const closing = (name: string): DestinationFinder => ({
    ownNames: undefined,
    spoken: () => new Map(),
    find: (request) => destinations.find(request),
    findListed: (host, request) => destinations.findListed(host, request),
    listsRedirected: (asked) => destinations.listsRedirected(asked),
    routePast: (original) => destinations.routePast(original),
    routeTo: (host) => destinations.routeTo(host),
    close: () => void closed.push(name),
  });
  replaceDestinations(closing('first'));
  const context: AppContext = {
    ...exchanges,
    network: systemNetwork,
    peers: new PeerWatch(clock, systemNetwork),
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
