import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createDerivationQueue,
  DerivationQueueFull,
  type ScryptDerivation,
} from '../../src/issuer/secret-hashing.ts';

const COST = { ln: 1, r: 1, p: 1 };

/** Derivations that end when they are told to, and a count of those that run. */
function setUp(limits: { concurrent: number; waiting: number }) {
  const running: PromiseWithResolvers<Buffer>[] = [];
  const secrets: string[] = [];
  const derive: ScryptDerivation = (secret) => {
    const derivation = Promise.withResolvers<Buffer>();
    running.push(derivation);
    secrets.push(secret);
    return derivation.promise;
  };
  const queue = createDerivationQueue(derive, limits);
  const ask = (secret: string, clientId = 'shop', address = '192.0.2.1'): Promise<Buffer> =>
    queue.derive({ clientId, address }, secret, Buffer.alloc(8), COST, 16);
  /** Ends one after the other; returns whose turn it was, in order. */
  async function drain(): Promise<readonly string[]> {
    for (let done = 0; done < running.length; done++) {
      running[done]?.resolve(Buffer.alloc(0));
      await settled();
    }
    return secrets;
  }
  return { queue, running, ask, drain };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('the derivation queue', () => {
  it('runs only so many at a time, and the next when one is done or has failed', async () => {
    const { running, ask } = setUp({ concurrent: 1, waiting: 9 });
    const asked = [ask('a'), ask('b'), ask('c')];
    await settled();
    expect(running).toHaveLength(1);
    running[0]?.resolve(Buffer.alloc(0));
    await asked[0];
    await settled();
    expect(running).toHaveLength(2);
    running[1]?.reject(new Error('out of memory'));
    await expect(asked[1]).rejects.toThrow('out of memory');
    await settled();
    expect(running).toHaveLength(3);
    running[2]?.resolve(Buffer.alloc(0));
    await asked[2];
  });

  it('refuses work that would wait too long, and accepts more when there is room again', async () => {
    const { running, ask } = setUp({ concurrent: 1, waiting: 1 });
    const [first, second] = [ask('a'), ask('b')];
    await expect(ask('c')).rejects.toBeInstanceOf(DerivationQueueFull);
    running[0]?.resolve(Buffer.alloc(0));
    await first;
    const fourth = ask('d');
    await settled();
    running[1]?.resolve(Buffer.alloc(0));
    await second;
    await settled();
    running[2]?.resolve(Buffer.alloc(0));
    await fourth;
  });

  it('gives turns to clients in turn, and for each to addresses in turn', async () => {
    const { ask, drain } = setUp({ concurrent: 1, waiting: 9 });
    const asked = [
      ask('flood 1', 'shop', 'a'),
      ask('flood 2', 'shop', 'a'),
      ask('flood 3', 'shop', 'a'),
      ask('flood 4', 'shop', 'a'),
      ask('shop elsewhere', 'shop', 'b'),
      ask('bank', 'bank', 'a'),
    ];
    expect(await drain()).toEqual(['flood 1', 'flood 2', 'bank', 'shop elsewhere', 'flood 3', 'flood 4']);
    await Promise.all(asked);
  });

  it('when full makes room for the client or address with fewer waiting', async () => {
    const { ask, drain } = setUp({ concurrent: 1, waiting: 3 });
    const flood = ['running', 'one', 'two', 'three'].map((name) => ask(name, 'shop', 'a'));
    const bank = ask('bank', 'bank', 'a');
    await expect(flood[3]).rejects.toBeInstanceOf(DerivationQueueFull);
    const elsewhere = ask('shop elsewhere', 'shop', 'b');
    await expect(flood[2]).rejects.toBeInstanceOf(DerivationQueueFull);
    await expect(ask('more', 'shop', 'a')).rejects.toBeInstanceOf(DerivationQueueFull);
    expect(await drain()).toEqual(['running', 'one', 'bank', 'shop elsewhere']);
    await Promise.all([flood[0], flood[1], bank, elsewhere]);
  });

  it('when full makes room among the addresses of a client though another has as many waiting', async () => {
    const { ask, drain } = setUp({ concurrent: 1, waiting: 4 });
    const asked = [ask('running', 'bank', 'a'), ask('bank 1', 'bank', 'a'), ask('bank 2', 'bank', 'a')];
    const flood = [ask('shop 1', 'shop', 'a'), ask('shop 2', 'shop', 'a')];
    const elsewhere = ask('shop elsewhere', 'shop', 'b');
    await expect(flood[1]).rejects.toBeInstanceOf(DerivationQueueFull);
    await drain();
    await Promise.all([...asked, flood[0], elsewhere]);
  });

  it('when full turns nobody away for a client or address with as many waiting', async () => {
    const { ask, drain } = setUp({ concurrent: 1, waiting: 3 });
    const asked = [
      ask('running', 'shop', 'a'),
      ask('one', 'shop', 'a'),
      ask('two', 'shop', 'a'),
      ask('elsewhere', 'shop', 'b'),
    ];
    await expect(ask('elsewhere, too', 'shop', 'b')).rejects.toBeInstanceOf(DerivationQueueFull);
    expect(await drain()).toEqual(['running', 'one', 'elsewhere', 'two']);
    await Promise.all(asked);
    const others = setUp({ concurrent: 1, waiting: 3 });
    const taken = [
      others.ask('running', 'bank', 'a'),
      others.ask('bank 1', 'bank', 'a'),
      others.ask('bank 2', 'bank', 'b'),
      others.ask('shop 1', 'shop', 'a'),
    ];
    await expect(others.ask('shop 2', 'shop', 'a')).rejects.toBeInstanceOf(DerivationQueueFull);
    await others.drain();
    await Promise.all(taken);
  });

  it('gives all others their turn after the last of one address was turned away', async () => {
    const { ask, drain } = setUp({ concurrent: 1, waiting: 3 });
    const running = ask('running', 'shop', 'a');
    const flood = ['one', 'two', 'three'].map((name) => ask(name, 'shop', name));
    const bank = ask('bank', 'bank', 'a');
    const outcomes = await Promise.all([
      drain(),
      ...[running, ...flood, bank].map((asked) => asked.then(String, (error) => error.constructor)),
    ]);
    expect(outcomes[0]).toEqual(['running', 'two', 'bank', 'three']);
    expect(outcomes.slice(1)).toEqual(['', DerivationQueueFull, '', '', '']);
  });

  it('with no room for waiting refuses work while it is busy', async () => {
    const { ask, drain } = setUp({ concurrent: 1, waiting: 0 });
    const first = ask('first');
    await expect(ask('second')).rejects.toBeInstanceOf(DerivationQueueFull);
    expect(await drain()).toEqual(['first']);
    await first;
  });

  it('runs idle work only when nothing else runs', async () => {
    const { queue, ask, running, drain } = setUp({ concurrent: 2, waiting: 3 });
    const work = ['spare', Buffer.alloc(8), COST, 16] as const;
    const spare = queue.deriveIfIdle(...work);
    expect(await queue.deriveIfIdle(...work)).toBeUndefined();
    const asked = ask('a');
    await settled();
    expect(running).toHaveLength(2);
    await drain();
    expect(await spare).toEqual(Buffer.alloc(0));
    await asked;
    expect(await Promise.race([queue.deriveIfIdle(...work), settled()])).toBeUndefined();
    expect(running).toHaveLength(3);
    await drain();
  });

  it('finishes every accepted derivation, and never runs too many at a time', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(3), fc.nat(3), fc.boolean(), fc.nat(3)), { maxLength: 60 }),
        async (steps) => {
          let running = 0;
          let most = 0;
          const open: (() => void)[] = [];
          const queue = createDerivationQueue(
            async () => {
              most = Math.max(most, ++running);
              await new Promise<void>((resolve) => open.push(resolve));
              running--;
              return Buffer.alloc(0);
            },
            { concurrent: 2, waiting: 5 },
          );
          const ends: Promise<unknown>[] = [];
          for (const [client, address, spare, endings] of steps) {
            const work = ['x', Buffer.alloc(8), COST, 16] as const;
            const asker = { clientId: `${client}`, address: `${address}` };
            const asked = spare ? queue.deriveIfIdle(...work) : queue.derive(asker, ...work);
            ends.push(asked.catch((error: unknown) => expect(error).toBeInstanceOf(DerivationQueueFull)));
            for (let ended = 0; ended < endings; ended++) open.shift()?.();
            await Promise.resolve();
          }
          for (let idle = 0; idle < 3; idle++) {
            while (open.length > 0) {
              open.shift()?.();
              await settled();
              idle = 0;
            }
            await settled();
          }
          await Promise.all(ends);
          expect(most).toBeLessThanOrEqual(2);
          expect(running).toBe(0);
        },
      ),
      { numRuns: 200 },
    );
  });
});
