import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { volume } from '../support/volume.ts';
import { loadProduct, type Product } from './data-path.ts';
import { explore } from './explore.ts';
import { KNOWN_WALKS } from './known-walks.ts';
import { MENDED_FAULTS, type MendedFault, sourceWith } from './mended-faults.ts';
import { runWalk } from './run-walk.ts';
import { createWorlds, DRIVERS, type Worlds } from './worlds.ts';

/** Every run takes the same walks; `npm run chaos` takes new ones, for those who can look into what they find. */
const SEED = 1;

let product: Product;

beforeAll(async () => {
  product = await loadProduct(join(import.meta.dirname, '../../src'));
});

describe.each(DRIVERS)('on %s sockets', (driver) => {
  let worlds: Worlds;
  beforeAll(async () => {
    worlds = await createWorlds(driver);
  });
  afterAll(() => worlds.close());

  it.each(Object.entries(KNOWN_WALKS))('%s: no more', async (_, walk) => {
    expect(await runWalk(walk, await worlds.open(walk), product)).toBeUndefined();
  });

  it(`walks from seed ${SEED}`, async () => {
    const { walks, finding } = await explore({ worlds, product, seed: SEED, durationMs: volume(200, 800) });
    const again = `npm run chaos -- --driver ${driver} --seed ${finding?.seed} --walks 1`;
    expect(finding?.error.message, again).toBeUndefined();
    expect(walks).toBeGreaterThan(0);
  });
});

it('what each mended fault would undo stands in the source once', async () => {
  const files = Object.values(MENDED_FAULTS).flatMap(({ changes }) => [...changes]);
  for (const { file, mended } of files) {
    const text = await readFile(join(import.meta.dirname, '../../src', file), 'utf8');
    expect([file, mended, text.split(mended).length - 1]).toEqual([file, mended, 1]);
  }
});

describe('a fault that was mended is found again', () => {
  /** Many times as many as it takes to find each of them, however long a busy machine takes for them. */
  const MAX_WALKS = 200;

  it.each((Object.keys(MENDED_FAULTS) as MendedFault[]).slice(0, volume(3, Number.POSITIVE_INFINITY)))(
    '%s',
    async (fault) => {
      const source = await sourceWith(fault);
      const worlds = await createWorlds('simulated');
      try {
        const faulty = await loadProduct(source.directory);
        const { seed } = MENDED_FAULTS[fault];
        const bounds = { seed, durationMs: Number.POSITIVE_INFINITY, mostWalks: MAX_WALKS, shortens: false };
        const { finding } = await explore({ worlds, product: faulty, ...bounds });
        expect(finding?.error.message).toMatch(/^request \d+ /);
      } finally {
        await worlds.close();
        await source.remove();
      }
    },
  );
});
