/** Names of upstreams, looked up for connections that are made, given up and made again. */

import { once } from 'node:events';
import { type AddressInfo, createServer, type LookupFunction, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Network, networkWithLookup } from '../../../src/proxy/io/network.ts';
import { DNS_BOUNDS, SHARED_MS, SharedLookups, SYSTEM_BOUNDS } from '../../../src/proxy/io/shared-lookups.ts';
import { garbageCollector } from '../../support/collect-garbage.ts';
import { ManualClock, settle } from '../../support/manual-clock.ts';

const NAME = 'api.example.com';

type Answer = (error: NodeJS.ErrnoException | null) => void;

/** A `lookup` that answers when it is told to, in the order in which it was asked. */
function heldLookup() {
  const asked: string[] = [];
  const answers: Answer[] = [];
  const lookup: LookupFunction = (hostname, _, told) => {
    asked.push(hostname);
    answers.push((error) => told(error, error === null ? [{ address: '127.0.0.1', family: 4 }] : []));
  };
  const answer = (error: NodeJS.ErrnoException | null = null): void => answers.shift()?.(error);
  return { lookup, asked, answer };
}

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

describe.each(Object.entries(DIALS))('connections %s', (_, dial) => {
  it('that wait for one name have it looked up once', async () => {
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

  it('that come after the answer have it looked up anew', async () => {
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

  it('that have their answer wait for nothing any more', async () => {
    const { lookup, answer } = heldLookup();
    const socket = given(dial(networkWithLookup(lookup), await listening()));
    const waiting = socket.listenerCount('close');
    const connected = once(socket, 'connect');
    answer();
    await connected;
    expect(socket.listenerCount('close')).toBe(waiting - 1);
  });

  it('all fail where the lookup does', async () => {
    const { lookup, answer } = heldLookup();
    const network = networkWithLookup(lookup);
    const failed = Array.from({ length: 100 }, () => once(dial(network, 1), 'error'));
    answer(Object.assign(new Error('nobody knows'), { code: 'EAI_AGAIN' }));
    for (const [error] of await Promise.all(failed)) expect(error).toMatchObject({ code: 'EAI_AGAIN' });
  });

  it('that are given up leave nothing behind, and the others go on', async () => {
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

it('one that was given up by the connection that began it is shared while it is under way', async () => {
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

describe('names that come from outside', () => {
  function asking() {
    const { lookup, asked, answer } = heldLookup();
    const lookups = new SharedLookups(lookup, SYSTEM_BOUNDS);
    const told: string[] = [];
    const ask = (name: string) => lookups.ask(name, { all: true }, () => told.push(name));
    const first = Array.from({ length: SYSTEM_BOUNDS.atOnce }, (_, index) => `${index}.example.com`);
    for (const name of first) ask(name);
    return { lookups, asked, answer, told, ask, first };
  }

  it('are looked up so many at once, the others as soon as these are over', async () => {
    const { asked, answer, told, ask, first } = asking();
    const others = Array.from({ length: 1000 }, (_, index) => `other-${index}.example.com`);
    for (const name of [...others, ...others]) ask(name);
    expect(asked).toEqual(first);
    for (let over = 1; over <= others.length; over++) {
      answer();
      expect(asked).toHaveLength(SYSTEM_BOUNDS.atOnce + over);
    }
    for (const _ of first) answer();
    await settle();
    expect(asked).toEqual([...first, ...others]);
    expect(told).toEqual([...first, ...others.flatMap((name) => [name, name])]);
  });

  it('are not looked up once nobody waits for them', async () => {
    const { asked, answer, told, ask, first } = asking();
    const leave = Array.from({ length: 1000 }, (_, index) => ask(`other-${index}.example.com`));
    ask('last.example.com');
    for (const one of leave) one();
    for (let over = 0; over <= SYSTEM_BOUNDS.atOnce; over++) answer();
    await settle();
    expect(asked).toEqual([...first, 'last.example.com']);
    expect(told).toEqual([...first, 'last.example.com']);
  });

  it('wait for no lookup that Node refuses to begin', async () => {
    const lookups = new SharedLookups(() => {
      throw new TypeError('no name');
    }, SYSTEM_BOUNDS);
    const failed: unknown[] = [];
    for (let times = 0; times < 3 * SYSTEM_BOUNDS.atOnce; times++) {
      lookups.ask(`${times}`, {}, (error) => failed.push(error?.message));
    }
    await settle();
    expect(failed).toEqual(new Array(3 * SYSTEM_BOUNDS.atOnce).fill('no name'));
  });
});

it('addresses of another family, or one in place of all, are another lookup', () => {
  const { lookup, asked } = heldLookup();
  const lookups = new SharedLookups(lookup, SYSTEM_BOUNDS);
  for (const options of [{ all: true }, { all: true, family: 4 }, {}, { all: true, hints: 32 }]) {
    lookups.ask(NAME, options, () => {});
    lookups.ask(NAME, { ...options }, () => {});
  }
  expect(asked).toHaveLength(4);
});

it('what one of those who wait throws keeps nothing from the others', async () => {
  const { lookup, answer } = heldLookup();
  const lookups = new SharedLookups(lookup, SYSTEM_BOUNDS);
  const thrown = Promise.withResolvers<unknown>();
  const listeners = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.once('uncaughtException', thrown.resolve);
  onTestFinished(() => {
    for (const listener of listeners) process.on('uncaughtException', listener);
  });
  lookups.ask(NAME, {}, () => {
    throw new Error('mine alone');
  });
  const told = new Promise((resolve) => lookups.ask(NAME, {}, resolve));
  answer();
  expect(await thrown.promise).toMatchObject({ message: 'mine alone' });
  expect(await told).toBeNull();
});

describe('a lookup whose answer does not come', () => {
  it('is shared for a second; who asks later is answered by another', async () => {
    const clock = new ManualClock();
    const asked: ((error: null) => void)[] = [];
    const lookups = new SharedLookups(
      (_name, _options, told) => {
        asked.push((error) => told(error, []));
      },
      SYSTEM_BOUNDS,
      clock,
    );
    const told: number[] = [];
    const ask = (who: number) => lookups.ask(NAME, {}, () => void told.push(who));
    ask(0);
    await clock.advance(SHARED_MS - 1);
    ask(1);
    expect(asked).toHaveLength(1);
    await clock.advance(1);
    ask(2);
    expect(asked).toHaveLength(2);
    asked[1]?.(null);
    await settle();
    expect(told).toEqual([2]);
    asked[0]?.(null);
    await settle();
    expect(told).toEqual([2, 0, 1]);
  });

  it.each([
    ['a few others of its name', SYSTEM_BOUNDS],
    ['if it is asked of DNS, no other of its name', DNS_BOUNDS],
  ])('has %s beside it, and leaves places to other names', async (_, bounds) => {
    const clock = new ManualClock();
    const asked: string[] = [];
    const lookups = new SharedLookups((name) => void asked.push(name), bounds, clock);
    for (let second = 0; second < 10; second++) {
      lookups.ask(NAME, {}, () => {});
      await clock.advance(SHARED_MS);
    }
    expect(asked).toEqual(Array.from({ length: bounds.ofOne }, () => NAME));
    lookups.ask('other.example.com', {}, () => {});
    expect(asked.at(-1)).toBe('other.example.com');
  });
});

it('a name that is asked of DNS waits for none that is not answered, of whatever kind', () => {
  const { lookup, asked } = heldLookup();
  const names = Array.from({ length: 100 }, (_, index) => `${index}.example.com`);
  const network = networkWithLookup(lookup, new Set(names));
  const others = Array.from({ length: SYSTEM_BOUNDS.atOnce }, (_, index) => `other-${index}.example.com`);
  for (const host of [...others, ...names]) {
    for (const dial of [network.connectTcp, network.connectTls])
      given(dial({ host: host.toUpperCase(), port: 1 }));
  }
  expect(asked).toEqual([...others, ...names].map((name) => name.toUpperCase()));
});
