/** Names of upstreams, looked up for connections that are made, given up and made again. */

import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { UPSTREAM_BOUNDS } from '../../../src/platform/net/lookups.ts';
import { type Network, networkWithLookup } from '../../../src/proxy/io/network.ts';
import { heldLookup } from '../../platform/net/held-lookup.ts';
import { garbageCollector } from '../../support/collect-garbage.ts';

const NAME = 'api.example.com';

/** Where connections are accepted and nothing is said. */
async function listening(): Promise<number> {
  const server = createServer((socket) => void socket.on('error', () => {}));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

const DIALS = {
  'over TCP': (network: Network, port: number): Socket => network.connectTcp({ host: NAME, port }),
  'over TLS': (network: Network, port: number): Socket => network.connectTls({ host: NAME, port }),
};

function given(socket: Socket): Socket {
  onTestFinished(() => void socket.destroy());
  return socket.on('error', () => {});
}

describe.each(Object.entries(DIALS))('DNS lookups for connections %s', (_, dial) => {
  it('are shared by connections that wait for one name', async () => {
    const { lookup, asked, answer } = heldLookup();
    const network = networkWithLookup(lookup);
    const port = await listening();
    const sockets = Array.from({ length: 100 }, () => given(dial(network, port)));
    expect(asked).toEqual([NAME]);
    const connected = sockets.map((socket) => once(socket, 'connect'));
    answer();
    await Promise.all(connected);
    expect(asked).toEqual([NAME]);
  });

  it('are made anew for connections after the answer', async () => {
    const { lookup, asked, answer } = heldLookup();
    const network = networkWithLookup(lookup);
    const port = await listening();
    for (const times of [1, 2, 3]) {
      const connected = once(given(dial(network, port)), 'connect');
      expect(asked).toHaveLength(times);
      answer();
      await connected;
    }
  });

  it('leave no listener on a socket that got its answer', async () => {
    const { lookup, answer } = heldLookup();
    const socket = given(dial(networkWithLookup(lookup), await listening()));
    const waiting = socket.listenerCount('close');
    const connected = once(socket, 'connect');
    answer();
    await connected;
    expect(socket.listenerCount('close')).toBe(waiting - 1);
  });

  it('that fail make all waiting connections fail', async () => {
    const { lookup, answer } = heldLookup();
    const network = networkWithLookup(lookup);
    const failed = Array.from({ length: 100 }, () => once(dial(network, 1), 'error'));
    answer(Object.assign(new Error('nobody knows'), { code: 'EAI_AGAIN' }));
    for (const [error] of await Promise.all(failed)) expect(error).toMatchObject({ code: 'EAI_AGAIN' });
  });

  it('leave nothing of abandoned connections, and the others go on', async () => {
    const collect = garbageCollector();
    const { lookup, asked, answer } = heldLookup();
    const network = networkWithLookup(lookup);
    const port = await listening();
    const connected = once(given(dial(network, port)), 'connect');
    const givenUp = Array.from({ length: 100 }, () => new WeakRef(dial(network, port).destroy()));
    await expect
      .poll(() => {
        collect();
        return givenUp.filter((socket) => socket.deref() !== undefined);
      })
      .toHaveLength(0);
    expect(asked).toEqual([NAME]);
    answer();
    await connected;
  });
});

it('a lookup under way is shared although the connection that began it was abandoned', async () => {
  const { lookup, asked, answer } = heldLookup();
  const network = networkWithLookup(lookup);
  const port = await listening();
  const first = network.connectTcp({ host: NAME, port }).destroy();
  await once(first, 'close');
  const connected = once(given(network.connectTcp({ host: NAME, port })), 'connect');
  expect(asked).toEqual([NAME]);
  answer();
  await connected;
});

it('lookups by DNS do not wait for unanswered lookups of other kinds or names', () => {
  const { lookup, asked } = heldLookup();
  const names = Array.from({ length: 100 }, (_, index) => `${index}.example.com`);
  const network = networkWithLookup(lookup, new Set(names));
  const others = Array.from({ length: UPSTREAM_BOUNDS.atOnce }, (_, index) => `other-${index}.example.com`);
  for (const host of [...others, ...names]) {
    for (const dial of [network.connectTcp, network.connectTls])
      given(dial({ host: host.toUpperCase(), port: 1 }));
  }
  expect(asked).toEqual([...others, ...names].map((name) => name.toUpperCase()));
});

it('one party’s names take at most its share of the lookups, and others go on', () => {
  const { lookup, asked } = heldLookup();
  const network = networkWithLookup(lookup);
  for (let index = 0; index < 100; index++) {
    given(network.connectTcp({ host: `${index}.example.com`, port: 1, party: '*.example.com' }));
    given(network.connectTls({ host: `${index}.example.net`, port: 1, party: 'other hosts' }));
  }
  expect(asked).toHaveLength(2 * UPSTREAM_BOUNDS.ofParty);
  given(network.connectTcp({ host: NAME, port: 1 }));
  expect(asked.at(-1)).toBe(NAME);
});
