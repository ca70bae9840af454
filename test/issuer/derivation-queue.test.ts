import { describe, expect, it } from 'vitest';
import { DerivationQueueFull, queueDerivations } from '../../src/issuer/derivation-queue.ts';
import type { ScryptDerivation } from '../../src/issuer/scrypt-hash.ts';

const COST = { ln: 1, r: 1, p: 1 };

/** Derivations that end when they are told to, and a count of those that run. */
function setUp(limits: { concurrent: number; waiting: number }) {
  const running: PromiseWithResolvers<Buffer>[] = [];
  const derive: ScryptDerivation = () => {
    const derivation = Promise.withResolvers<Buffer>();
    running.push(derivation);
    return derivation.promise;
  };
  const queued = queueDerivations(derive, limits);
  return { running, ask: (secret: string) => queued(secret, Buffer.alloc(8), COST, 16) };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('queueDerivations', () => {
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

  it('turns away what would wait too long, and takes more when there is room again', async () => {
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
});
